-- SPDX-License-Identifier: BSD-3-Clause
-- Wireshark dissector of Tributary's protocols, which RoCE v2 carries (docs/protocols.md):
--   trib       control messages of aggregation nodes (JOIN, ABORT, ...) and multimem; DATA and RESULT of a tree's edges
--   tribproto  packets of aggregation protocols (switchml, atp, ps, plug-ins): protocols/host/protocol_wire.h
--   tribrank   datagrams between the ranks of a communicator: host/coll/transport/seal.h
--
-- What a frame does not say itself (group, slot, child) is known where the capture has the edge's JOIN and its answer; such
-- fields are in brackets. Lengths are checked before anything is read: what does not fit is left to other dissectors.
--
-- A plug-in's own head is shown as bytes, unless a dissector is in the table "tribproto.protocol" under the protocol's name:
--   DissectorTable.get("tribproto.protocol"):add("mine", my_proto)

local AGG_MAGIC, PROTO_MAGIC, PROTO_QKEY, PROTO_DATA = 0x54524942, 0x54524950, 0x54524950, 0xa6
local CTL_BYTES, HDR_BYTES, HEAD_BYTES = 248, 32, 16

-- ---- names ----

local TYPES = {
    "JOIN", "JOIN_REPLY", "LEAVE", "LEAVE_REPLY", "ABORT", "ABORT_ACK", "PEER_DOWN", "PROBE", "PROBE_REPLY",
    "MM_BIND", "MM_BIND_REPLY", "MM_READY", "MM_READY_REPLY", "MM_UNBIND", "MM_UNBIND_REPLY", "MM_ABORT", "MM_ABORT_ACK",
    "MM_MOVE", "MM_MOVE_REPLY", "WINDOW",
}
local JOIN, JOIN_REPLY, ABORT, MM_FIRST, MM_LAST = 1, 2, 5, 10, 19
local STATUS = {
    [0] = "ok", "protocol version not supported", "unknown tree", "this aggregation node is not in that tree",
    "not a member of the group", "wrong key for the group", "MTU differs from the group's",
    "member list differs from the group's", "over quota: groups", "over quota: slots", "over quota: buffers",
    "this switch does not reduce", "member has joined from another queue pair", "parent unreachable",
    "members disagree on the operation", "collective, type or operation not supported", "a member is missing",
    "a member left in mid-operation", "connection of an edge failed", "malformed message", "no such group here",
    "too many children below one aggregation node", "this switch has no multimem", "memory that cannot be bound to a region",
    "over quota: what one host may hold alone",
}
local DATA_TYPES = { [1] = "DATA", [2] = "RESULT" }
local COLLS = { [1] = "all-reduce", [2] = "reduce", [3] = "broadcast", [4] = "barrier" }
local DTYPES = {
    [0] = "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2",
    "float_int", "2int", "int16", "uint16",
}
local OPS = { [0] = "sum", "prod", "min", "max", "avg", "band", "bor", "bxor", "minloc", "maxloc", "land", "lor", "lxor" }
local FAILOVER_TEXT = 116
local RANK_MESSAGES = {
    [0x54524250] = "PHASE", -- host/coll/transport/ctl.c
    [0x5452424c] = "LINK", -- link.c
    [0x5452424f] = "OPERATION", -- host/coll/agree.c
    [0x54524246] = "FAILOVER", -- host/coll/recovery/failover_priv.h
}
local FAILOVER = { [0] = "none", "ask", "report", "verdict", "end", "ready" }
local PHASES = { [0] = "none", "ready", "closing", "failed" }

-- ---- fields ----

local trib = Proto("trib", "Tributary aggregation")
local f = {}
local function field(proto, name, kind, ...)
    local pf = ProtoField[kind](proto .. "." .. name, ...)
    f[proto .. "." .. name] = pf
    return pf
end
local function t(name, kind, ...) return field("trib", name, kind, ...) end

trib.fields = {
    t("version", "uint8", "Version"), t("type", "uint8", "Type", base.DEC, TYPES),
    t("status", "uint16", "Status", base.DEC, STATUS), t("xid", "uint32", "Request", base.DEC),
    t("tree", "uint16", "Tree", base.DEC), t("mtu", "uint16", "MTU", base.DEC), t("group", "uint32", "Group", base.DEC),
    t("window", "uint32", "Window (slots)", base.DEC), t("key", "uint64", "Key", base.HEX),
    t("qpn", "uint32", "Queue pair of the sender's end", base.HEX), t("psn", "uint32", "First PSN of the sender", base.DEC),
    t("member", "uint32", "Member", base.DEC), t("node", "uint16", "Sending node", base.DEC, { [0xffff] = "a member" }),
    t("child", "uint16", "Child", base.DEC), t("attempt", "uint16", "Attempt", base.DEC), t("slot", "uint32", "Slot", base.DEC),
    t("expected", "uint32", "Groups of the job, by level", base.HEX),
    t("ranks_per_host", "uint16", "Ranks per host", base.DEC), t("spans", "uint16", "Spans", base.DEC),
    t("members", "string", "Members"), t("text", "string", "Text"),
    -- multimem
    t("mm.members", "uint16", "Members", base.DEC), t("mm.area", "uint8", "Area", base.DEC),
    t("mm.va", "uint64", "Address", base.HEX), t("mm.length", "uint64", "Bytes", base.DEC),
    t("mm.rkey", "uint32", "R_Key", base.HEX), t("mm.reads", "uint32", "READs outstanding", base.DEC),
    t("mm.write_slices", "uint32", "WRITE slices outstanding", base.DEC), t("mm.others", "bool", "All but the caller"),
    t("mm.own", "bool", "Accumulates in the elements' type"), t("mm.offset", "uint64", "Offset", base.DEC),
    -- data
    t("data_type", "uint8", "Type", base.DEC, DATA_TYPES), t("coll", "uint8", "Collective", base.DEC, COLLS),
    t("dtype", "uint8", "Elements", base.DEC, DTYPES), t("op", "uint8", "Operation", base.DEC, OPS),
    t("flags", "uint8", "Flags", base.HEX), t("flags.empty", "bool", "Empty: the header alone", 8, nil, 1),
    t("root", "uint16", "Root", base.DEC), t("opseq", "uint32", "Number of the operation", base.DEC),
    t("msg_len", "uint32", "Bytes of elements", base.DEC), t("total", "uint64", "Bytes of the vector", base.DEC),
    t("offset", "uint64", "Offset in the vector", base.DEC), t("elements", "bytes", "Elements"),
    t("packet", "uint32", "Packet of the message", base.DEC),
    t("request_frame", "framenum", "Request in frame", base.NONE, frametype.REQUEST),
    t("header_frame", "framenum", "Header in frame", base.NONE),
}

local opcode_of, psn_of, dest_of = Field.new("infiniband.bth.opcode"), Field.new("infiniband.bth.psn"), Field.new("infiniband.bth.destqp")
local q_key_of, va_of, bytes_of = Field.new("infiniband.deth.q_key"), Field.new("infiniband.reth.va"), Field.new("infiniband.reth.dmalen")
local src_of, dst_of = Field.new("ip.src"), Field.new("ip.dst")
local UD_SEND, SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY = 100, 0, 1, 2, 4

-- Value of the frame's innermost such field; nil: it has none.
local function value(extractor)
    local all = { extractor() }
    return #all > 0 and all[#all].value or nil
end
local function address(extractor) return tostring(value(extractor) or "?") end
local function end_of(addr, qpn) return addr .. "/" .. tostring(qpn) end

-- ---- what the capture has told so far ----

local requests -- "asker>switch/xid/tree/group" -> {frame, qpn, psn, ...} of a JOIN
local edges -- "address/qpn" of the receiving end -> edge
local frames -- frame number -> what was found when it was first seen
local jobs -- number of a job -> name of its aggregation protocol

local function forget() requests, edges, frames, jobs = {}, {}, {}, {} end
forget()
function trib.init() forget() end

local function edge_at(key)
    edges[key] = edges[key] or { messages = {} }
    return edges[key]
end

-- ---- control messages ----

-- Ranges of numbers as text: "0-7,12".
local function ranges(list)
    local out, i = {}, 1
    while i <= #list do
        local j = i
        while j < #list and list[j + 1] == list[j] + 1 do j = j + 1 end
        out[#out + 1] = i == j and tostring(list[i]) or list[i] .. "-" .. list[j]
        i = j + 1
    end
    return #out > 0 and table.concat(out, ",") or "none"
end

local function members_of(buf, spans)
    if spans > 21 then return "malformed: more than 21 spans" end
    local out, list = {}, {}
    for i = 0, spans - 1 do
        local s = buf(56 + 6 * i, 6)
        local first, count, stride = s(0, 2):uint(), s(2, 2):uint(), s(4, 2):uint()
        out[#out + 1] = string.format("%d to %d", first, first + (math.max(count, 1) - 1) * stride)
            .. (stride ~= 1 and " by " .. stride or "")
    end
    if spans > 0 then return table.concat(out, ", ") end
    for word = 0, 15 do
        for byte = 7, 0, -1 do -- words are in network order
            local bits = buf(56 + 8 * word + byte, 1):uint()
            for bit = 0, 7 do
                if math.floor(bits / 2 ^ bit) % 2 == 1 then list[#list + 1] = 64 * word + 8 * (7 - byte) + bit end
            end
        end
    end
    return ranges(list)
end

-- Up to the first NUL, which may be missing; what is no plain text as dots.
local function text_of(range) return (range:raw():match("^[^%z]*"):gsub("[^\32-\126]", ".")) end

local function add(tree, buf, ...)
    for _, v in ipairs({ ... }) do tree:add(f[v[1]], buf(v[2], v[3])) end
end

-- A JOIN and its answer make two edges: what each end sends to the other.
local function learn(pinfo, buf, kind)
    local src, dst = address(src_of), address(dst_of)
    local id = "/" .. buf(8, 4):uint() .. "/" .. buf(12, 2):uint() .. "/" .. buf(16, 4):uint() -- xid, tree, group
    if kind == JOIN then
        local key = src .. ">" .. dst .. id
        requests[key] = requests[key] or {
            frame = pinfo.number, qpn = buf(32, 4):uint(), psn = buf(36, 4):uint(), member = buf(40, 4):uint(),
            tree = buf(12, 2):uint(), mtu = buf(14, 2):uint(), group = buf(16, 4):uint(),
        }
    elseif kind == JOIN_REPLY then
        local r = requests[dst .. ">" .. src .. id]
        if not r then return end
        frames[pinfo.number] = { request = r.frame }
        if buf(6, 2):uint() ~= 0 then return end
        local function open(addr, qpn, psn)
            local old = edges[end_of(addr, qpn)]
            if old and old.frame == r.frame then return end -- the answer, repeated or on another link
            edges[end_of(addr, qpn)] = {
                frame = r.frame, group = r.group, tree = r.tree, mtu = r.mtu, member = r.member,
                child = buf(46, 2):uint(), next_psn = psn, next_slot = 0, messages = {},
            }
        end
        open(src, buf(32, 4):uint(), r.psn)
        open(dst, r.qpn, buf(36, 4):uint())
    end
end

local function multimem(buf, tree)
    add(tree, buf, { "trib.group", 12, 4 }, { "trib.key", 16, 8 }, { "trib.mm.members", 24, 2 }, { "trib.member", 26, 2 },
        { "trib.mtu", 28, 2 }, { "trib.mm.area", 30, 1 }, { "trib.qpn", 32, 4 }, { "trib.psn", 36, 4 }, { "trib.mm.va", 40, 8 },
        { "trib.mm.length", 48, 8 }, { "trib.mm.rkey", 56, 4 }, { "trib.mm.reads", 60, 4 }, { "trib.mm.write_slices", 64, 4 })
    return string.format("group %d, member %d of %d", buf(12, 4):uint(), buf(26, 2):uint(), buf(24, 2):uint())
end

local function group_message(buf, tree, kind)
    add(tree, buf, { "trib.tree", 12, 2 }, { "trib.mtu", 14, 2 }, { "trib.group", 16, 4 }, { "trib.window", 20, 4 },
        { "trib.key", 24, 8 }, { "trib.qpn", 32, 4 }, { "trib.psn", 36, 4 }, { "trib.member", 40, 4 }, { "trib.node", 44, 2 },
        { (kind == JOIN or kind == ABORT) and "trib.attempt" or "trib.child", 46, 2 },
        { kind == JOIN and "trib.expected" or "trib.slot", 48, 4 },
        { "trib.ranks_per_host", 52, 2 }, { "trib.spans", 54, 2 })
    if kind == JOIN then tree:add(f["trib.members"], buf(56, 128), members_of(buf, buf(54, 2):uint())) end
    local says = string.format("group %d, tree %d", buf(16, 4):uint(), buf(12, 2):uint())
    if kind == JOIN then
        says = says .. string.format(", member %d, asks for %d slots", buf(40, 4):uint(), buf(20, 4):uint())
    elseif kind == JOIN_REPLY and buf(6, 2):uint() == 0 then
        says = says .. string.format(", child %d, %d slots", buf(46, 2):uint(), buf(20, 4):uint())
    end
    return says
end

-- of: "" or the name of the aggregation protocol that the message is about.
local function control(buf, pinfo, root, of)
    local kind, status = buf(5, 1):uint(), buf(6, 2):uint()
    local tree = root:add(trib, buf(), "Tributary, " .. (TYPES[kind] or "unknown type") .. of)
    add(tree, buf, { "trib.version", 4, 1 }, { "trib.type", 5, 1 }, { "trib.status", 6, 2 }, { "trib.xid", 8, 4 })
    local of_multimem = kind >= MM_FIRST and kind <= MM_LAST
    local says = of_multimem and multimem(buf, tree) or group_message(buf, tree, kind)
    local seen = frames[pinfo.number]
    if seen and seen.request then tree:add(f["trib.request_frame"], seen.request):set_generated() end
    -- behind the fields of the type: a JOIN has its list of members there, and the protocol's name
    local at = kind == JOIN and buf(184, 64) or of_multimem and buf(72, 176) or buf(56, 176)
    local text = text_of(at)
    tree:add(f["trib.text"], at, text)
    pinfo.cols.protocol = "TRIB"
    pinfo.cols.info = (TYPES[kind] or "type " .. kind) .. of .. ": " .. says
        .. (status ~= 0 and ": " .. (STATUS[status] or "status " .. status) or "") .. (text ~= "" and ": " .. text or "")
    return true
end

-- ---- data of a tree's edge ----

local function is_header(buf)
    local coll, dtype, op = buf(2, 1):uint(), buf(3, 1):uint(), buf(4, 1):uint()
    return buf(0, 1):uint() == 1 and DATA_TYPES[buf(1, 1):uint()] and COLLS[coll] and dtype < 64 and op < 64 and buf(5, 1):uint() < 2
end

-- Where the message stands among those of its edge. A message that was seen keeps its place when it is sent again.
local function place(pinfo, key, psn, buf)
    local e = edge_at(key)
    local m = e.messages[psn]
    local mtu, empty, bytes = e.mtu, buf(5, 1):uint() == 1, buf(12, 4):uint()
    if not m or m.opseq ~= buf(8, 4):uint() or m.offset ~= tostring(buf(24, 8):uint64()) then
        m = {
            frame = pinfo.number, opseq = buf(8, 4):uint(), offset = tostring(buf(24, 8):uint64()), kind = buf(1, 1):uint(),
            coll = buf(2, 1):uint(), dtype = buf(3, 1):uint(), op = buf(4, 1):uint(),
        }
        e.messages[psn] = m
        if mtu and psn == e.next_psn then
            local slots = math.ceil((HDR_BYTES + bytes) / mtu)
            m.slot, m.slots = e.next_slot, slots
            e.next_slot, e.next_psn = e.next_slot + slots, (psn + (empty and 1 or slots)) % 2 ^ 24
        end
    end
    return { edge = e, message = m, packet = 0 }
end

-- The message that a packet without a header belongs to: it began at most 7 packets before.
local function find(key, psn)
    local e = edges[key]
    for i = 1, e and 7 or 0 do
        local m = e.messages[(psn - i) % 2 ^ 24]
        if m then return { edge = e, message = m, packet = i } end
    end
end

local function told(tree, seen)
    local e, m = seen.edge, seen.message
    for _, name in ipairs({ "group", "tree", "child" }) do
        if e[name] then tree:add(f["trib." .. name], e[name]):set_generated() end
    end
    if m.slot then tree:add(f["trib.slot"], m.slot + seen.packet):set_generated() end
    tree:add(f["trib.packet"], seen.packet):set_generated()
end

local function describe(pinfo, seen, extra)
    local e, m = seen.edge, seen.message
    pinfo.cols.protocol = "TRIB"
    pinfo.cols.info = string.format("%s: %s%s %d, %s of %s%s%s", DATA_TYPES[m.kind], e.group and "group " .. e.group .. ", " or "",
        COLLS[m.coll], m.opseq, OPS[m.op] or "op " .. m.op, DTYPES[m.dtype] or "type " .. m.dtype,
        m.slot and ", slot " .. m.slot + seen.packet or "", extra)
end

local function data(buf, pinfo, root, opcode)
    local key, psn = end_of(address(dst_of), value(dest_of)), value(psn_of)
    if opcode == SEND_FIRST or opcode == SEND_ONLY then
        if buf:len() < HDR_BYTES or not is_header(buf) then return false end
        frames[pinfo.number] = frames[pinfo.number] or place(pinfo, key, psn, buf)
        local tree = root:add(trib, buf(), "Tributary, " .. DATA_TYPES[buf(1, 1):uint()])
        add(tree, buf, { "trib.version", 0, 1 }, { "trib.data_type", 1, 1 }, { "trib.coll", 2, 1 }, { "trib.dtype", 3, 1 },
            { "trib.op", 4, 1 }, { "trib.flags", 5, 1 }, { "trib.flags.empty", 5, 1 }, { "trib.root", 6, 2 },
            { "trib.opseq", 8, 4 }, { "trib.msg_len", 12, 4 }, { "trib.total", 16, 8 }, { "trib.offset", 24, 8 })
        if buf:len() > HDR_BYTES then tree:add(f["trib.elements"], buf(HDR_BYTES)) end
        told(tree, frames[pinfo.number])
        describe(pinfo, frames[pinfo.number], string.format(", bytes %s + %d of %s%s", tostring(buf(24, 8):uint64()),
            buf(12, 4):uint(), tostring(buf(16, 8):uint64()), buf(5, 1):uint() == 1 and ", empty" or ""))
        return true
    end
    if not frames[pinfo.number] then frames[pinfo.number] = find(key, psn) end
    local seen = frames[pinfo.number]
    if not seen or not seen.message then return false end
    local tree = root:add(trib, buf(), "Tributary, " .. DATA_TYPES[seen.message.kind] .. ", continued")
    tree:add(f["trib.elements"], buf())
    tree:add(f["trib.header_frame"], seen.message.frame):set_generated()
    told(tree, seen)
    describe(pinfo, seen, ", continued")
    return true
end

-- ---- packets of aggregation protocols ----

local tribproto = Proto("tribproto", "Tributary aggregation protocol")
local function p(name, kind, ...) return field("tribproto", name, kind, ...) end
local KINDS = { [1] = "part", [2] = "result" }
local FROM, CHILD = { [0xffff] = "a switch" }, { [0xffff] = "not a child of the receiver" }
tribproto.fields = {
    p("flags", "uint8", "Flags", base.HEX), p("head_bytes", "uint8", "Bytes of the protocol's head", base.DEC),
    p("from", "uint16", "From rank", base.DEC, FROM), p("child", "uint16", "Child", base.DEC, CHILD),
    p("job", "uint32", "Job", base.DEC), p("tag", "uint32", "Tag", base.HEX), p("name", "string", "Protocol"),
    p("target.ip", "ipv4", "Target's address"), p("target.qpn", "uint32", "Target's queue pair", base.HEX),
    p("head", "bytes", "Head of the protocol"), p("data", "bytes", "Data"),
}
-- A protocol without a switch has no JOIN that tells its name. Is it the parameter server's head, with the data that it states?
local SIZES = { [0] = 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 8, 8, 2, 2 }
local function guess(head_bytes, buf, at, data_bytes)
    if head_bytes == 16 and KINDS[buf(at + 8, 1):uint()]
        and (SIZES[buf(at + 9, 1):uint()] or 0) * buf(at + 14, 2):le_uint() == data_bytes then
        return "ps"
    end
end
local heads = DissectorTable.new("tribproto.protocol", "Tributary aggregation protocol", ftypes.STRING)

local function packet(buf, pinfo, root)
    local head_bytes, targeted = buf(2, 1):uint(), buf(1, 1):uint() % 2 == 1
    local at = HEAD_BYTES + (targeted and 8 or 0)
    local data_at = at + 4 * math.ceil(head_bytes / 4)
    if data_at > buf:len() then return false end
    local job = buf(8, 4):uint()
    local name = jobs[job] or guess(head_bytes, buf, at, buf:len() - data_at)
    local tree = root:add(tribproto, buf(), "Tributary, packet of " .. (name or "an aggregation protocol"))
    add(tree, buf, { "tribproto.flags", 1, 1 }, { "tribproto.head_bytes", 2, 1 }, { "tribproto.from", 4, 2 },
        { "tribproto.child", 6, 2 }, { "tribproto.job", 8, 4 }, { "tribproto.tag", 12, 4 })
    if name then tree:add(f["tribproto.name"], name):set_generated() end
    if targeted then add(tree, buf, { "tribproto.target.ip", 16, 4 }, { "tribproto.target.qpn", 20, 4 }) end
    local from = buf(4, 2):uint()
    pinfo.cols.protocol = name and name:upper() or "TRIBPROTO"
    pinfo.cols.info = string.format("job %d, from %s, %d bytes of data", job, from == 0xffff and "a switch" or "rank " .. from,
        buf:len() - data_at)
    if head_bytes > 0 then
        local own = name and heads:get_dissector(name)
        if own then own:call(buf(at, head_bytes):tvb(), pinfo, root) else tree:add(f["tribproto.head"], buf(at, head_bytes)) end
    end
    if buf:len() > data_at then tree:add(f["tribproto.data"], buf(data_at)) end
    return true
end

-- Heads of the built-in protocols, which are in the senders' byte order: protocols/{switchml,atp}.h, ps.c.
local function head_dissector(name, title, bytes, layout)
    local proto = Proto("tribproto_" .. name, "Tributary, " .. title)
    local list = {}
    for _, v in ipairs(layout) do
        v.field = ProtoField[v[2]]("tribproto_" .. name .. "." .. v[1], v[3], v.base or (v[2] ~= "bytes" and base.DEC or nil), v.values)
        list[#list + 1] = v.field
    end
    proto.fields = list
    function proto.dissector(buf, pinfo, root)
        local tree = root:add(proto, buf())
        if buf:len() ~= bytes then return tree:append_text(": found " .. buf:len() .. " bytes, expected " .. bytes) end
        for _, v in ipairs(layout) do
            if v[2] == "bytes" then tree:add(v.field, buf(v[4], v[5])) else tree:add_le(v.field, buf(v[4], v[5])) end
        end
        pinfo.cols.info:prepend(string.format("%s %s, ", KINDS[buf(layout.kind, 1):uint()] or "?", tostring(buf(0, 8):le_uint64())))
    end
    heads:add(name, proto)
end
local SEQ = { "seq", "uint64", "Number", 0, 8 }
head_dissector("switchml", "SwitchML", 16, {
    kind = 8, SEQ, { "kind", "uint8", "Kind", 8, 1, values = KINDS }, { "type", "uint8", "Elements", 9, 1, values = DTYPES },
    { "slots", "uint16", "Slots of a version", 10, 2 }, { "count", "uint16", "Elements in the packet", 12, 2 },
    { "ahead", "int16", "Exponent of the data ahead", 14, 2 },
})
head_dissector("atp", "ATP", 32, {
    kind = 28, SEQ, { "ranks", "bytes", "Ranks in the sum", 8, 16 }, { "window", "uint16", "Window of the sender", 24, 2 },
    { "count", "uint16", "Elements in the packet", 26, 2 }, { "kind", "uint8", "Kind", 28, 1, values = KINDS },
    { "flags", "uint8", "Flags", 29, 1, base = base.HEX }, { "type", "uint8", "Elements", 30, 1, values = DTYPES },
    { "fan_in", "uint8", "Ranks at the first switch", 31, 1 },
})
head_dissector("ps", "parameter server", 16, {
    kind = 8, SEQ, { "kind", "uint8", "Kind", 8, 1, values = KINDS }, { "type", "uint8", "Elements", 9, 1, values = DTYPES },
    { "op", "uint8", "Operation", 10, 1, values = OPS }, { "window", "uint16", "Window of the sender", 12, 2 },
    { "count", "uint16", "Elements in the packet", 14, 2 },
})

-- ---- datagrams between ranks ----

local tribrank = Proto("tribrank", "Tributary rank")
local function r(name, kind, ...) return field("tribrank", name, kind, ...) end
tribrank.fields = {
    r("message", "uint32", "Message", base.HEX, RANK_MESSAGES), r("seq", "uint32", "Number", base.DEC),
    r("from", "uint32", "From rank", base.DEC), r("mac", "uint64", "MAC", base.HEX),
    r("phase", "uint8", "Phase", base.DEC, PHASES), r("seen", "uint8", "Receiver's phase, as far as known", base.DEC, PHASES),
    r("answer", "bool", "An answer is wanted"), r("text", "string", "Text"),
    r("key", "uint32", "Generation and channel", base.HEX), r("have", "bool", "The sender can receive"),
    r("want", "bool", "Can the receiver?"), r("mtu", "uint16", "MTU", base.DEC), r("qpn", "uint32", "Queue pair", base.HEX),
    r("psn", "uint32", "First PSN", base.DEC), r("rkey", "uint32", "R_Key of the credit word", base.HEX), r("gid", "ipv6", "GID"),
    r("opseq", "uint32", "Number of the operation", base.DEC), r("kind", "uint32", "Collective", base.DEC),
    r("algo", "uint32", "Algorithm", base.DEC), r("dtype", "uint32", "Elements", base.DEC, DTYPES),
    r("op", "uint32", "Operation", base.DEC, OPS), r("root", "uint32", "Root", base.DEC), r("count", "uint64", "Count", base.DEC),
    r("rank", "uint32", "About rank", base.DEC), r("to", "uint32", "To rank", base.DEC),
    r("step", "uint8", "Step", base.DEC, FAILOVER), r("round", "uint8", "Round", base.DEC),
}

-- Fields of each message behind its head.
local RANK_LAYOUT = {
    PHASE = { { "phase", 21, 1 }, { "seen", 22, 1 }, { "answer", 23, 1 } },
    LINK = { { "key", 20, 4 }, { "have", 24, 1 }, { "want", 25, 1 }, { "mtu", 26, 2 }, { "qpn", 28, 4 }, { "psn", 32, 4 },
        { "rkey", 36, 4 }, { "gid", 40, 16 } },
    OPERATION = { { "opseq", 20, 4 }, { "kind", 24, 4 }, { "algo", 28, 4 }, { "dtype", 32, 4 }, { "op", 36, 4 }, { "root", 40, 4 },
        { "count", 52, 8 } },
    FAILOVER = { { "rank", 20, 4 }, { "to", 24, 4 }, { "opseq", 28, 4 }, { "step", 34, 1 }, { "round", 35, 1 } },
}

local function rank_message(buf, pinfo, root)
    local name, from, text = RANK_MESSAGES[buf(0, 4):uint()], buf(8, 4):uint(), ""
    local tree = root:add(tribrank, buf(), "Tributary, " .. name .. " of rank " .. from)
    add(tree, buf, { "tribrank.message", 0, 4 }, { "tribrank.seq", 4, 4 }, { "tribrank.from", 8, 4 }, { "tribrank.mac", 12, 8 })
    for _, v in ipairs(RANK_LAYOUT[name]) do
        if v[2] + v[3] <= buf:len() then tree:add(f["tribrank." .. v[1]], buf(v[2], v[3])) end
    end
    pinfo.cols.protocol = "TRIBRANK"
    pinfo.cols.info = name .. " of rank " .. from
    if name == "PHASE" and buf:len() > 24 then
        pinfo.cols.info:append(": " .. (PHASES[buf(21, 1):uint()] or "?"))
        text = text_of(buf(24))
        tree:add(f["tribrank.text"], buf(24), text)
    elseif name == "FAILOVER" and buf:len() > 37 + FAILOVER_TEXT then
        pinfo.cols.info:append(": " .. (FAILOVER[buf(34, 1):uint()] or "?"))
        text = text_of(buf(buf:len() - FAILOVER_TEXT))
        tree:add(f["tribrank.text"], buf(buf:len() - FAILOVER_TEXT), text)
    end
    if text ~= "" then pinfo.cols.info:append(": " .. text) end
    return true
end

-- ---- entry ----

local function datagram(buf, pinfo, root)
    local magic, q_key = buf(0, 4):uint(), value(q_key_of)
    if magic == AGG_MAGIC and buf:len() == CTL_BYTES then
        if not pinfo.visited then learn(pinfo, buf, buf(5, 1):uint()) end
        return control(buf, pinfo, root, "")
    elseif magic == PROTO_MAGIC and buf:len() == CTL_BYTES then
        local name = text_of(buf(184, 64))
        local job = buf(16, 4):uint()
        if not pinfo.visited and buf(5, 1):uint() == JOIN and name:match("^[%w_-]+$") then jobs[job] = name end
        return control(buf, pinfo, root, " (" .. (jobs[job] or "aggregation protocol") .. ")")
    elseif buf(0, 1):uint() == PROTO_DATA and buf:len() >= HEAD_BYTES
        and q_key and q_key:lower() == PROTO_QKEY then
        return packet(buf, pinfo, root)
    elseif RANK_MESSAGES[magic] and buf:len() >= 20 then
        return rank_message(buf, pinfo, root)
    end
    return false
end

local function dissect(buf, pinfo, root)
    local opcode = value(opcode_of)
    if not opcode or not value(src_of) or buf:len() < 4 then return false end
    if opcode == UD_SEND then return datagram(buf, pinfo, root) end
    if opcode <= SEND_ONLY and opcode ~= 3 then return data(buf, pinfo, root, opcode) end
    return false
end
trib:register_heuristic("infiniband.payload", dissect)
function trib.dissector(buf, pinfo, root) dissect(buf, pinfo, root) end

-- READs and WRITEs of multimem regions: the address says what to do.
local mm = Proto("tribmm", "Tributary multimem access")
function mm.dissector(_, pinfo, root)
    local va = value(va_of)
    if not va then return end
    local hi, lo = va:higher(), va:lower()
    if math.floor(hi / 2 ^ 24) ~= 0x40 then return end
    local opcode = value(opcode_of) or 0
    local read = opcode == 12
    local tree = root:add(trib, read and "Tributary, ld_reduce of a region" or "Tributary, store to a region")
    local function say(name, v) tree:add(f[name], v):set_generated() end
    local area, others = math.floor(hi / 2 ^ 22) % 4, math.floor(hi / 2 ^ 21) % 2 == 1
    local op, dtype = math.floor(hi / 2 ^ 16) % 16, math.floor(hi / 2 ^ 8) % 256
    say("trib.mm.area", area)
    say("trib.mm.others", others)
    if read then
        say("trib.mm.own", math.floor(hi / 2 ^ 20) % 2 == 1)
        say("trib.op", op)
        say("trib.dtype", dtype)
    end
    say("trib.mm.offset", UInt64.new(lo, hi % 256))
    pinfo.cols.protocol = "TRIB"
    pinfo.cols.info = string.format("%s area %d, offset %s, %s bytes%s%s", read and "ld_reduce" or "store", area,
        tostring(UInt64.new(lo, hi % 256)), tostring(value(bytes_of) or "?"),
        read and ", " .. (OPS[op] or "op " .. op) .. " of " .. (DTYPES[dtype] or "type " .. dtype) or "",
        others and ", all but the caller" or "")
end
register_postdissector(mm)
