#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib import: what ibnetdiscover prints and NCCL's topologies become confs that trib plan takes and trib sim runs, with the file's rates and
# ports; what a conf cannot have is told by its line; what is neither is refused by line.
# clock: virtual
. "$(dirname "$0")/lib.sh"
PYTHON=${PYTHON:-python3}
export PYTHONDONTWRITEBYTECODE=1
cd "$tmp" || exit 1
import() { "$root/scripts/trib" import "$@" 2>told.out; }
made() { import "$@" -o made.conf || fail "import $*: $(cat told.out)"; trib plan -v made.conf >plan.out 2>&1 || fail "plan: $(cat plan.out made.conf)"; }

# InfiniBand: two leaves, a spine by two cables, a host with two HCAs, an aggregation node, a router, an unused port, a link between leaves
cat >net.txt <<'END'
#
# Topology file: generated on Mon Sep  1 10:00:00 2025
#
# Initiated from node 0c42a10300a1b2c4 port 0c42a10300a1b2c4

vendid=0x2c9
devid=0xd2f2
sysimgguid=0xb8cef60300e5d2a0
switchguid=0xb8cef60300e5d2a0(b8cef60300e5d2a0)
Switch	41 "S-b8cef60300e5d2a0"		# "MF0;leaf-1:MQM8700/U1" enhanced port 0 lid 1 lmc 0
[1]	"H-0c42a10300a1b2c4"[1](c42a10300a1b2c4) 		# "node01 mlx5_0" lid 5 4xHDR
[2]	"H-0c42a10300a1b2c8"[1](c42a10300a1b2c8) 		# "node02 HCA-1" lid 6 4xHDR
[21]	"S-b8cef60300e5d2c0"[1]		# "MF0;spine-1:MQM8700/U1" lid 3 4xHDR
[22][ext 22]	"S-b8cef60300e5d2c0"[2]		# "MF0;spine-1:MQM8700/U1" lid 3 4xHDR
[30]	"S-b8cef60300e5d2b0"[30]		# "MF0;leaf-2:MQM8700/U1" lid 2 4xHDR
[41]	"H-b8cef60300e5d2a8"[1](b8cef60300e5d2a8) 		# "Mellanox Technologies Aggregation Node" lid 9 4xHDR

vendid=0x2c9
switchguid=0xb8cef60300e5d2b0(b8cef60300e5d2b0)
Switch	40 "S-b8cef60300e5d2b0"		# "MF0;leaf-2:MQM8700/U1" enhanced port 0 lid 2 lmc 0
[1]	"H-0c42a10300a1b2cc"[1](c42a10300a1b2cc) 		# "node01 mlx5_1" lid 7 2xHDR
[2]	"H-0c42a10300a1b2d0"[2](c42a10300a1b2d1) 		# "node03 mlx5_0" lid 8 4xEDR
[21]	"S-b8cef60300e5d2c0"[3]		# "MF0;spine-1:MQM8700/U1" lid 3 4xHDR
[30]	"S-b8cef60300e5d2a0"[30]		# "MF0;leaf-1:MQM8700/U1" lid 1 4xHDR

Switch	40 "S-b8cef60300e5d2c0"		# "MF0;spine-1:MQM8700/U1" enhanced port 0 lid 3 lmc 0
[1]	"S-b8cef60300e5d2a0"[21]		# "MF0;leaf-1:MQM8700/U1" lid 1 4xHDR
[2]	"S-b8cef60300e5d2a0"[22]		# "MF0;leaf-1:MQM8700/U1" lid 1 4xHDR
[3]	"S-b8cef60300e5d2b0"[21]		# "MF0;leaf-2:MQM8700/U1" lid 2 2xHDR
[9]	"R-0002c90300000001"[1](2c90300000001) 		# "router" lid 11 4xHDR

caguid=0xc42a10300a1b2c4
Ca	1 "H-0c42a10300a1b2c4"		# "node01 mlx5_0"
[1](c42a10300a1b2c4) 	"S-b8cef60300e5d2a0"[1]		# lid 5 lmc 0 "MF0;leaf-1:MQM8700/U1" lid 1 4xHDR

Ca	1 "H-0c42a10300a1b2cc"		# "node01 mlx5_1"
Ca	1 "H-0c42a10300a1b2c8"		# "node02 HCA-1"
Ca	2 "H-0c42a10300a1b2d0"		# "node03 mlx5_0"
Ca	1 "H-b8cef60300e5d2a8"		# "Mellanox Technologies Aggregation Node"
Rt	1 "R-0002c90300000001"		# "router"
END
made net.txt
has '^net: 3 hosts|^Fabric net' plan.out
for link in 'node01:[01]-leaf_1:0 +200Gb/s' 'node01:[01]-leaf_2:0 +100Gb/s' 'node03:0-leaf_2:1 +100Gb/s' 'leaf_1:20-spine_1:0 +200Gb/s' 'leaf_1:21-spine_1:1 +200Gb/s' 'leaf_2:20-spine_1:2 +100Gb/s'; do
    has "^ +$link" plan.out
done
cp made.conf of-net.conf
has 'net.txt:15: a link between switches of one level is left out' told.out
has 'net.txt:[0-9]+: an aggregation node is left out' told.out
has 'net.txt:[0-9]+: a router is left out' told.out
has 'the two ends have different rates, the smaller one counts' told.out
trib sim made.conf --algo ring,sharp -b 64K -e 64K -J net.json >sim.out 2>&1 || fail "sim: $(cat sim.out)"
jq -e '[.results[] | select(.wrong == 0)] | length == 4' net.json >jq.out || fail "rows"

# NCCL: a node with NVSwitches, alone and thrice; GPUs linked to each other; without NVLink; two files
gpu() { # gpu BUS DEV SM LINKS
    echo "<pci busid=\"0000:$1:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"$2\" sm=\"$3\" rank=\"$2\" gdr=\"1\">$4</gpu></pci>"
}
nic() { echo "<pci busid=\"0000:$1:00.0\" class=\"0x020700\"><nic><net name=\"mlx5_$2\" dev=\"$2\" speed=\"400000\" port=\"1\" guid=\"0x1\" maxconn=\"131072\" gdr=\"1\"/></nic></pci>"; }
switched='<nvlink target="0000:05:00.0" count="5" tclass="0x068000"/><nvlink target="0000:06:00.0" count="4" tclass="0x068000"/><nvlink target="0000:07:00.0" count="4" tclass="0x068000"/><nvlink target="0000:08:00.0" count="5" tclass="0x068000"/>'
{
    echo '<system version="1"><cpu host_hash="0x16fe" numaid="0" arch="x86_64"><pci busid="0000:16:00.0" class="0x060400">'
    for i in 0 1 2 3; do gpu 1$i $i 90 "$switched"; nic 2$i $i; done
    echo '</pci></cpu></system>'
} >h100.xml
made h100.xml
has '^ +n0g0:0-.* +125GB/s|^ +n0g0:0-.* +1Tb/s|^ +n0g0:0-.* +1000Gb/s' plan.out
trib sim made.conf --algo ring,nvls -b 64K -e 64K >sim.out 2>&1 || fail "sim of a node: $(cat sim.out)"
made h100.xml --nodes 3 --latency 500ns --name three
has '"?three' plan.out
has '^ +n2g3:[0-9]-leaf0:[0-9]+ +400Gb/s +500ns' plan.out
trib sim made.conf --algo ring,hier -g 12 -b 64K -e 64K >sim.out 2>&1 || fail "sim of three nodes: $(cat sim.out)"
{
    echo '<system version="1"><cpu numaid="0">'
    gpu 10 0 80 '<nvlink target="0000:11:00.0" count="12" tclass="0x030200"/>'
    gpu 11 1 80 '<nvlink target="0000:10:00.0" count="12" tclass="0x030200"/>'
    echo '<nic><net name="eth0" dev="0" speed="100000" port="0"/></nic></cpu></system>'
} >pair.xml
made pair.xml
[ "$(grep -c '^ *n0g0:[0-9]*-n0g1:[0-9]* .* 25GB/s\|^ *n0g0:[0-9]*-n0g1:[0-9]* *200Gb/s' plan.out)" = 12 ] || fail "12 links: $(cat plan.out)"
cp pair.xml other.xml
made pair.xml other.xml
has '^ +n1g1:[0-9]+-leaf0:3 +50Gb/s' plan.out
has '1 NICs for 2 GPUs' told.out
sed 's/<nvlink[^>]*>//g' pair.xml >pcie.xml
made pcie.xml
has 'GPUs without NVLink meet at the leaf' told.out

# what is neither
# the same by iblinkinfo: the conf is the same, but for comments
cat >net2.txt <<'END'
CA: node01 mlx5_0:
      0x0c42a10300a1b2c4      5    1[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       1    1[  ] "MF0;leaf-1:MQM8700/U1" ( )
CA: node01 mlx5_1:
      0x0c42a10300a1b2cc      7    1[  ] ==( 2X          53.125 Gbps Active/  LinkUp)==>       2    1[  ] "MF0;leaf-2:MQM8700/U1" ( )
CA: node02 HCA-1:
      0x0c42a10300a1b2c8      6    1[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       1    2[  ] "MF0;leaf-1:MQM8700/U1" ( )
CA: node03 mlx5_0:
      0x0c42a10300a1b2d1      8    2[  ] ==( 4X        25.78125 Gbps Active/  LinkUp)==>       2    2[  ] "MF0;leaf-2:MQM8700/U1" ( )
      0x0c42a10300a1b2d0     18    1[  ] ==( 4X             2.5 Gbps   Down/ Polling)==>             [  ] "" ( )
CA: Mellanox Technologies Aggregation Node:
      0xb8cef60300e5d2a8      9    1[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       1   41[  ] "MF0;leaf-1:MQM8700/U1" ( )
Switch: 0xb8cef60300e5d2a0 MF0;leaf-1:MQM8700/U1:
           1    1[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       5    1[  ] "node01 mlx5_0" ( )
           1    2[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       6    1[  ] "node02 HCA-1" ( )
           1   21[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       3    1[  ] "MF0;spine-1:MQM8700/U1" ( )
           1   22[ 22] ==( 4X          53.125 Gbps Active/  LinkUp)==>       3    2[  ] "MF0;spine-1:MQM8700/U1" ( )
           1   23[  ] ==(                Down/ Polling)==>             [  ] "" ( )
           1   30[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       2   30[  ] "MF0;leaf-2:MQM8700/U1" ( )
           1   41[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       9    1[  ] "Mellanox Technologies Aggregation Node" ( )
Switch: 0xb8cef60300e5d2b0 MF0;leaf-2:MQM8700/U1:
           2    1[  ] ==( 2X          53.125 Gbps Active/  LinkUp)==>       7    1[  ] "node01 mlx5_1" ( )
           2    2[  ] ==( 4X        25.78125 Gbps Active/  LinkUp)==>       8    2[  ] "node03 mlx5_0" ( Could be 53.125 Gbps)
           2   21[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       3    3[  ] "MF0;spine-1:MQM8700/U1" ( )
           2   30[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       1   30[  ] "MF0;leaf-1:MQM8700/U1" ( )
Switch: 0xb8cef60300e5d2c0 MF0;spine-1:MQM8700/U1:
           3    1[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       1   21[  ] "MF0;leaf-1:MQM8700/U1" ( )
           3    2[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       1   22[  ] "MF0;leaf-1:MQM8700/U1" ( )
           3    3[  ] ==( 2X          53.125 Gbps Active/  LinkUp)==>       2   21[  ] "MF0;leaf-2:MQM8700/U1" ( )
           3    9[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>      11    1[  ] "router" ( )
Router: router:
      0x0002c90300000001     11    1[  ] ==( 4X          53.125 Gbps Active/  LinkUp)==>       3    9[  ] "MF0;spine-1:MQM8700/U1" ( )
END
made net2.txt
plain() { grep -v '^#\|^name' "$1" | tr -d ',' | sort; }
diff <(plain of-net.conf) <(plain made.conf) >diff.out || fail "by ibnetdiscover and by iblinkinfo: $(cat diff.out)"
has 'a router is left out' told.out

refused() { # refused WORDS FILE [ARG...]
    import "${@:2}" -o bad.conf && fail "import ${*:2}: exit code 0"
    has "$1" told.out
    has_not Traceback told.out
    [ ! -e bad.conf ] || fail "$2: a conf"
}
sed 's/53.125 Gbps/77 Gbps/' net2.txt >rates2.txt
sed 's/==>       5    1/==>      55    1/' net2.txt >lid2.txt
sed '/^Switch: 0xb8cef60300e5d2b0/s/b0/a0/' net2.txt >twice2.txt
sed 's/^           2   21/           1   21/' net2.txt >other2.txt
printf '0x0002c90200404ad8 "SwitchX"      4    3[  ] ==( 4X 25.78125 Gbps Active/  LinkUp)==>  0x0002c903000e0b72     15    1[  ] "exe0002 HCA-1" ( )\n' >line2.txt
tail -n 3 net2.txt >part2.txt
refused 'rates2.txt:2: found .4X +77 Gbps.*expected lanes and the signalling rate' rates2.txt
refused 'lid2.txt:[0-9]+: found a link to LID 55' lid2.txt
refused 'twice2.txt:20: found 0xb8cef60300e5d2a0 a second time, expected it once .line 12' twice2.txt
refused 'other2.txt:[0-9]+: found LID 1, which the node of line 12 has' other2.txt
refused 'line2.txt:1: found a line of iblinkinfo --line' line2.txt
refused 'part2.txt:1: found a port of no node' part2.txt
swap() { sed "$1" net.txt >"$2"; }
swap 's/lid 5 4xHDR/lid 5 4xQQR/' speed.txt
swap 's/lid 5 4xHDR/lid 5/' none.txt
swap 's/^\[2\]\t"H-0c42a10300a1b2c8"/[1]\t"H-0c42a10300a1b2c8"/' twice.txt
swap '/^Ca.*b2c8/d' lost.txt
swap '3s/.*/what is this/' garbage.txt
refused 'speed.txt:11: found 4xQQR, expected|speed.txt:11: found a link without its rate' speed.txt
refused 'none.txt:11: found a link without its rate' none.txt
refused 'twice.txt:[0-9]+: found a second link at port 1' twice.txt
refused 'lost.txt:12: found a link to "H-0c42a10300a1b2c8", which the file does not have' lost.txt
refused "garbage.txt:3: found 'what is this'" garbage.txt
: >empty.txt
refused 'empty.txt: found no node' empty.txt
head -c 300 /dev/urandom >random.bin
refused 'random.bin:1: found|random.bin: found' random.bin
gzip -c net.txt >net.txt.gz
refused 'net.txt.gz: found a file that gzip has compressed' net.txt.gz
head -c 500 h100.xml >cut.xml
refused 'cut.xml:[0-9]+: found no XML' cut.xml
echo '<!DOCTYPE s [<!ENTITY a "b">]><system>&a;</system>' >entity.xml
refused 'entity.xml:1: found a document type' entity.xml
echo '<html/>' >html.xml
refused 'html.xml:1: found <html>, expected <system>' html.xml
sed 's/count="5"/count="many"/' h100.xml >count.xml
refused 'count.xml:[0-9]+: found count="many" at a <nvlink>, expected a number' count.xml
refused 'pair.xml: found other GPUs or links than in h100.xml' h100.xml pair.xml
refused 'nothing.txt: No such file' nothing.txt
refused 'found 2 files, expected one of ibnetdiscover' net.txt net.txt
refused "nodes: found '0', expected" h100.xml --nodes 0
refused "latency: found 'long', expected a time" h100.xml --latency long
refused 'found no FILE'

# files of each kind, as tools write them: what is made of each, which trib plan takes, or why there is nothing (import/expected.txt)
"$PYTHON" "$root/tests/tools/readers_check.py" import "$root/tests/e2e/import" >readers.out 2>&1 || fail "readers: $(cat readers.out)"
has '^[4-9][0-9] of import: all right$' readers.out
