/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a packet was dropped: one list gives the enum, the names (telemetry) and the texts (people).
 */
#ifndef TRIB_ROCE_REASONS_H
#define TRIB_ROCE_REASONS_H

/* X(NAME, name, text) */
#define ROCE_REASONS(X)                                                                            \
    X(OK, ok, "accepted")                                                                          \
    X(SHORT, short, "frame ends before its headers do")                                            \
    X(NOT_IP, not_ip, "neither IPv4 nor IPv6")                                                     \
    X(IP_HEADER, ip_header, "IP header with options or of another version")                        \
    X(IP_CHECKSUM, ip_checksum, "wrong IPv4 header checksum")                                      \
    X(IP_LENGTH, ip_length, "IP length does not fit the frame")                                    \
    X(IP_FRAGMENT, ip_fragment, "IPv4 fragment")                                                   \
    X(IP_ADDRESS, ip_address, "IPv6 address that is no link-local one of the fabric")              \
    X(NOT_ROCE, not_roce, "not UDP to port 4791")                                                  \
    X(UDP_LENGTH, udp_length, "UDP length does not fit the datagram")                              \
    X(BTH_VERSION, bth_version, "transport header version is not 0")                               \
    X(OPCODE, opcode, "opcode unknown or reserved")                                                \
    X(PAYLOAD, payload, "payload length or padding that the opcode does not allow")                \
    X(SHAPE, shape, "payload is scattered over segments")                                          \
    X(NOT_OURS, not_ours, "for another MAC or IP address")                                         \
    X(ICRC, icrc, "wrong ICRC")                                                                    \
    X(PKEY, pkey, "P_Key is not the default one")                                                  \
    X(NO_QP, no_qp, "no such queue pair")                                                          \
    X(QP_STATE, qp_state, "queue pair is not in a state to receive this")                          \
    X(TRANSPORT, transport, "opcode of another transport than the queue pair's")                   \
    X(SOURCE, source, "from another address than the queue pair's peer")                           \
    X(QKEY, qkey, "wrong Q_Key")                                                                   \
    X(NO_RECEIVE, no_receive, "no receive request posted (UD, UC)")                                \
    X(TOO_LONG, too_long, "longer than the receive buffer (UD, UC)")                               \
    X(DUPLICATE, duplicate, "duplicate request, acknowledged again")                               \
    X(OUT_OF_SEQUENCE, out_of_sequence, "PSN ahead of the one expected")                           \
    X(RNR, rnr, "receiver not ready, NAK sent")                                                    \
    X(REFUSED, refused, "request refused with a NAK")                                              \
    X(STALE, stale, "response without an outstanding request")                                     \
    X(UC_SEQUENCE, uc_sequence, "rest of a UC message with a gap")                                 \
    X(UC_ERROR, uc_error, "UC request without access or out of order")

enum roce_reason {
#define X(n, l, t) ROCE_##n,
    ROCE_REASONS(X)
#undef X
        ROCE_REASON_COUNT
};

const char *roce_reason_name(enum roce_reason r);

#endif
