# SPDX-License-Identifier: BSD-3-Clause
# Tributary. `make demo` is the main job, `make test` the tests; both install what is missing first.
#
#   all demo install uninstall clean        programs; V=1 shows commands, BUILD=, PREFIX=, DESTDIR= say where
#   help                                    these lines
#   test                                    unit tests, end-to-end tests in virtual time, and the core of those in real time (minutes); T=TEXT: the
#                                           tests of any tier with TEXT in their names
#   integration thirdparty                  the other end-to-end tests in real time; those with MPI, UCX, Slurm and other programs of others
#   unit e2e                                unit tests alone; all end-to-end tests
#   static                                  the programs with everything but glibc linked in, in $(BUILD)/static
#   asan debug tsan determinism coverage    the same in other builds; one-result: by threads and traced
#   faults                                  allocations, maps and files fail in programs in virtual time, one at a time (DRAW=)
#   hostile                                 attacks of one process or user on others, each repelled
#   mutate ROOM=                            small bugs planted by a tool in a room: lists those that no test finds (N=, SEED=, UNIT=1)
#   matrix kills clocks clock-faults chaos mutations threat-model protocol-mutations rounding scale corruptions   longer ones: chaos takes FIRST=, SEEDS= and BUDGET= (seconds)
#   trunk-seeds                             trunks of several machines in virtual time: they die, stop, are parted and attacked (SEEDS=, SEED=)
#   keep-seeds                              life cycles of fabrics in virtual time: processes die, hang and are stopped, all runs out (SEEDS=, SEED=)
#   explain-real                            20 planted causes and 10 healthy runs in real time, explained (5 minutes)
#   validate                                published measurements of real machines beside predictions
#   fuzz interop bench bench-quick          libFuzzer (FUZZ_SECONDS=, FUZZ_TARGETS=), guests with Soft-RoCE, ratios
#   verbs-suite                             rdma-core's own tests on the emulated HCA (RDMA_CORE_TESTS=DIR: those in DIR too)
#   gpu-nccl                                stock NCCL on emulated fabrics, on a machine with a GPU (NCCL_ARGS="--nccl FILE"; 6 minutes)
#   nixl                                    NIXL from PyPI (70 MB) between two hosts
#   suites                                  mpi4py's own suite, UCC's teams, NVIDIA's plug-in, PyTorch with PowerSGD and restarts (BUDGET=)
#   torch torch2                            PyTorch on the backend "trib": Debian's (600 MB of packages); FSDP on 2.x from PyPI
#   python-test                             the Python package's runs, sweeps, figures and notebooks, with Debian's pandas and matplotlib
#   wheel                                   the Python package, in $(BUILD)/wheel
#   container-test                          the steps of packaging/Containerfile, run by a user without privileges under chroot (root)
#   system-test                             built and unit-tested for SUITE=trixie ARCH=amd64, or for ARCH=arm64 under qemu-user (root)
#   deb deb-test                            the Debian package, in $(BUILD)/deb; installed, run and removed in a bare Debian (root)
#   docs-test docs-check docs-tables        commands of README.md and docs/, and what they print; links, pages that are too long, tables; writes
#                                           tables of documents anew from the code
#   format lint                             clang-format, cppcheck; of Python ruff and mypy
#
# Every room (rooms.mk) is one archive; a test is any tests/<room>/test_*.c and links its room and what that uses.

BUILD  ?= build
PREFIX ?= /usr/local
CC     ?= gcc
MODE   ?= release
Q := $(if $(V),,@)

# As many jobs as cores, unless -j is given. Several goals (clean all) are built one after the other.
ifeq ($(filter -j% --jobserver% --no-print-directory,$(MAKEFLAGS))$(word 2,$(MAKECMDGOALS)),)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif

CFLAGS_release := -O2 -g
CFLAGS_checked := -O2 -g -DTRIB_CHECKED
CFLAGS_coverage := -O1 -g -DTRIB_CHECKED --coverage
CFLAGS_debug   := -O0 -g -DTRIB_CHECKED
CFLAGS_fuzz    := -O1 -gline-tables-only -DTRIB_CHECKED -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# gcc reports false uninitialised variables under this sanitizer.
CFLAGS_tsan    := -O1 -g -DTRIB_CHECKED -fsanitize=thread -fno-omit-frame-pointer -Wno-maybe-uninitialized
# Lines are what a sanitizer names; variables would cost a fifth and more of the compilation.
# Allocations, maps and files fail on purpose where TRIB_FAULT asks for it (base/shortage/fault.h).
CFLAGS_asan    := -O1 -g1 -DTRIB_CHECKED -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -include base/shortage/fault.h
WARN   := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wwrite-strings -Wvla -Werror
DPDK_CFLAGS := $(shell pkg-config --cflags libdpdk 2>/dev/null)
# DPDK names the CPU that it needs, a Nehalem; tuned for one, every load of 32 bytes would be two.
CFLAGS += -std=gnu17 $(CFLAGS_$(MODE)) -fPIC -ffp-contract=off -fvisibility=hidden -pthread -D_GNU_SOURCE -I. -Iinclude $(WARN) \
          $(patsubst -I%,-isystem %,$(filter-out -mrtm,$(DPDK_CFLAGS))) -mtune=generic

# DPDK statically: only what a userspace fabric uses, and no driver directory is loaded into users' programs.
DPDK_WHOLE := mempool_ring mempool_stack bus_vdev
DPDK_PLAIN := pdump pcapng bpf ethdev meter net hash rcu telemetry kvargs mbuf mempool stack ring timer eal
# Parts of what was eal in 22.11.
DPDK_DIR   := $(shell pkg-config --variable=libdir libdpdk 2>/dev/null)
DPDK_PLAIN += $(foreach l,log argparse,$(if $(wildcard $(DPDK_DIR)/librte_$(l).a),$(l)))
# Ports to the outside. A static build has no drivers that need libraries of their own.
DPDK_PORTS := bus_pci net_af_packet net_null net_pcap net_tap net_vhost net_virtio net_e1000 net_ixgbe net_i40e net_iavf net_ice
DPDK_NICS  := bus_auxiliary net_af_xdp net_mlx5
NIC_LIBS   := -lxdp -lbpf -lmlx5 -libverbs
DPDK_EXTRA := pci common_iavf common_mlx5 vhost gso ip_frag cryptodev dmadev security cmdline
static = $(addsuffix .a,$(addprefix -l:librte_,$(1)))
DPDK_LIBS  := -Wl,--whole-archive $(call static,$(DPDK_WHOLE)) -Wl,--no-whole-archive \
              -Wl,--start-group $(call static,$(DPDK_PLAIN)) -Wl,--end-group
DPDK_SWITCH_LIBS = -Wl,--whole-archive $(call static,$(DPDK_WHOLE) $(DPDK_PORTS) $(1)) \
              -Wl,--no-whole-archive -Wl,--start-group $(call static,$(DPDK_PLAIN) $(DPDK_EXTRA)) -Wl,--end-group
SYS_LIBS := -lconfig -ljansson -lnuma -lpcap -lbsd -lmd -lelf -lz -lm -ldl -lpthread

# CUDA, where it is: CUDA_HOME, nvcc on the PATH, or the usual place. Only the driver is used, and it is loaded at run time. cubins run on all GPUs of
# their generation (sm_80 on sm_86 and sm_89 too), the PTX on later ones.
NVCC := $(firstword $(wildcard $(addsuffix /bin/nvcc,$(CUDA_HOME))) $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA_SM := $(if $(NVCC),$(patsubst sm_%,%,$(filter sm_75 sm_80 sm_90 sm_100,$(shell $(NVCC) --list-gpu-code 2>/dev/null))))
CUDA_INCLUDE := $(if $(NVCC),$(shell dirname $$(dirname $$(readlink -f $(NVCC))))/include)
NVCCFLAGS = -fatbin -O3 --fmad=false -I. -Xptxas -v -Wno-deprecated-gpu-targets -Werror all-warnings \
             $(foreach s,$(CUDA_SM),-gencode arch=compute_$(s),code=sm_$(s)) $(foreach s,$(lastword $(CUDA_SM)),-gencode arch=compute_$(s),code=compute_$(s))
# The same for every BUILD.
IMAGES  := build/images
FATBINS := $(if $(NVCC),$(patsubst host/kernels/%.cu,$(IMAGES)/%.fatbin,$(wildcard host/kernels/*.cu)))

# ---- rooms -------------------------------------------------------------------------------------------
MAINS := fabric/report/trib_plan.c fabric/theory/trib_model.c trace/trib_trace.c io/trib_switch.c io/telemetry/trib_telemetry.c io/live/trib_status.c io/live/trib_metrics.c io/live/trib_top.c io/live/trib_faults.c host/launch/trib_perf.c host/sandbox/trib_enter.c host/keep/trib_keep.c trib/trib.c protocols/check/trib_check_protocol.c plugins/check/trib_check_nccl_plugin.c sim/trib_sim.c
src = $(filter-out $(MAINS),$(foreach d,$(1),$(wildcard $(d)/*.c)))
obj = $(patsubst %.c,$(BUILD)/%.o,$(1))

# An archive for each room, libhost-hca.a of host/hca, and what a room needs to be linked: those that it uses, those that they use, and so on.
include rooms.mk
ROOMS := $(patsubst USES_%,%,$(filter USES_%,$(.VARIABLES)))
$(foreach r,$(ROOMS),$(eval SRC_$(r) := $(call src,$(r))))
archives = $(foreach r,$(1),$(if $(SRC_$(r)),$(BUILD)/lib$(subst /,-,$(r)).a))
with_used = $(sort $(1) $(foreach r,$(1),$(USES_$(r)) $(UP_$(r))))
closure   = $(if $(filter-out $(1),$(call with_used,$(1))),$(call closure,$(call with_used,$(1))),$(1))
$(foreach r,$(ROOMS),$(eval ON_$(r) := $(call closure,$(r))))
on   = $(sort $(foreach r,$(1),$(ON_$(r))))
libs = $(call archives,$(call on,$(1)))
# Of all that a program is made of: they may use each other.
linked = $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group

TESTS := $(patsubst %.c,$(BUILD)/%,$(shell find tests -name 'test_*.c' | sort))
# The simulated machine exchanges stacks and data of its processes, which these sanitizers take for mistakes.
TESTS := $(filter-out $(if $(filter asan tsan,$(MODE)),$(BUILD)/tests/trib/life/%),$(TESTS))
FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
BENCHES := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/bench/bench_*.c))
PROGS := $(BUILD)/trib $(BUILD)/trib-plan $(BUILD)/trib-model $(BUILD)/trib-trace $(BUILD)/trib-switch $(BUILD)/trib-perf $(BUILD)/trib-sim $(BUILD)/trib-enter $(BUILD)/trib-keep $(BUILD)/trib-telemetry $(BUILD)/trib-status $(BUILD)/trib-metrics $(BUILD)/trib-top $(BUILD)/trib-faults \
         $(BUILD)/trib-check-protocol $(BUILD)/trib-check-nccl-plugin $(BUILD)/bin/rdma \
         $(BUILD)/libtribverbs.so $(BUILD)/libtribhint.so $(BUILD)/libtribclock.so $(BUILD)/libtributary.so.1 $(BUILD)/libsharp_coll.so.5 $(BUILD)/libnccl-net-tributary.so

# Open MPI's component is built where mpicc and Open MPI's own headers (4.1) are. Those of Open MPI 5 differ, and Debian's are not whole.
MPI_INCLUDE := $(if $(findstring Open MPI 4.1,$(shell mpicc --showme:version 2>/dev/null)),$(dir $(firstword $(wildcard $(addsuffix /openmpi/ompi/mca/coll/coll.h,$(patsubst -I%,%,$(filter -I%,$(shell mpicc --showme:compile 2>/dev/null))))))))
MPI_INCLUDE := $(patsubst %/openmpi/ompi/mca/coll/,%,$(MPI_INCLUDE))
PROGS += $(if $(MPI_INCLUDE),$(BUILD)/openmpi/mca_coll_trib.so)
# Communicators over a launcher's PMIx, where its headers are.
PMIX_CFLAGS := $(patsubst -I%,-isystem %,$(shell pkg-config --cflags pmix 2>/dev/null))
PROGS += $(if $(PMIX_CFLAGS),$(BUILD)/pmix/store_pmix.so)

RUN := static demo test integration thirdparty unit e2e hostile matrix formulas kills clocks clock-faults chaos faults mutate mutations protocol-mutations rounding corruptions scale interop verbs-suite suites bench bench-quick fuzz asan tsan debug coverage determinism one-result explain-real validate gpu-nccl torch torch2 nixl python-test wheel deb deb-test container-test system-test docs-test docs-check docs-tables format lint trunk-seeds keep-seeds threat-model
.PHONY: all programs test-programs unit-programs static-programs bench-programs fuzz-programs help install uninstall clean $(RUN)
.SECONDARY:
all:
	$(Q)scripts/setup.sh build
	$(Q)$(MAKE) --no-print-directory programs
programs: $(PROGS) $(BUILD)/man/trib.1

# Manual pages and completion, from what the programs print of their tables.
$(BUILD)/man/trib.1: $(filter-out %.so,$(PROGS)) $(addprefix scripts/,manuals.sh trib-sweep trib-calibrate trib-explain trib-report trib-import trib-nccl completion.bash completion.zsh) \
    $(wildcard python/tributary/_cli.py python/tributary/*/command.py)
	@echo "  MAN   $(@D)"
	$(Q)scripts/manuals.sh $(BUILD)

# What is built, for results (system/provenance.c): touched only when it changes, and linked to programs that write results alone.
COMMIT := $(shell git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)
$(BUILD)/commit: FORCE
	$(Q)mkdir -p $(@D) && echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' >$@
$(BUILD)/commit.o: $(BUILD)/commit
	$(Q)echo 'const char trib_commit[] = "$(COMMIT)";' | $(CC) $(CFLAGS) -x c -c - -o $@
$(addprefix $(BUILD)/,trib-sim trib-perf static/trib-sim static/trib-perf): $(BUILD)/commit.o
# Not one of .SECONDARY, whose absence would mean nothing.
.PHONY: FORCE

# How it is compiled: objects of other flags are none of this build. Warnings make no other object.
FLAGS := $(filter-out ccache $(WARN),$(CC) $(CFLAGS))
$(BUILD)/flags: FORCE
	$(Q)mkdir -p $(@D) && echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' >$@

define room_rule
$(call archives,$(1)): $(call obj,$(SRC_$(1)))
	@echo "  AR    $$@"
	$(Q)rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(if $(SRC_$(r)),$(eval $(call room_rule,$(r)))))

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c $< -o $@

# The report on registers and spills is kept next to the image (tests/e2e/cuda_build.sh).
$(IMAGES)/%.fatbin: host/kernels/%.cu host/kernels/grid.h host/kernels/body.h host/kernels/element.h host/kernels/kernels.h
	@mkdir -p $(@D)
	@echo "  NVCC  $<"
	$(Q)$(NVCC) $(NVCCFLAGS) $< -o $@ 2>$(@:.fatbin=.ptxas) || { cat $(@:.fatbin=.ptxas); rm -f $@; exit 1; }
# The NVSwitches' reductions exist from sm_90 on; an nvcc that knows none of those makes an empty image.
$(IMAGES)/multimem.fatbin: CUDA_SM := $(or $(filter-out 75 80,$(CUDA_SM)),$(lastword $(CUDA_SM)))
$(IMAGES)/multimem.fatbin: host/kernels/multimem.h
$(BUILD)/host/kernels/%.o: CFLAGS += $(if $(NVCC),-DKERNEL_IMAGES='"$(IMAGES)"' -isystem $(CUDA_INCLUDE))
$(BUILD)/host/kernels/image.o: $(FATBINS)

# What only computes takes larger fabrics than what runs them (fabric/fabric.h, FAB_WIDE).
wide = $(patsubst %.c,$(BUILD)/wide/%.o,$(1))
$(BUILD)/wide/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CC    $< (wide)"
	$(Q)$(CC) $(CFLAGS) -DFAB_WIDE -MMD -MP -c $< -o $@
$(BUILD)/wide/lib%.a:
	@echo "  AR    $@"
	$(Q)rm -f $@ && ar rcs $@ $^
wide_of = $(call wide,$(foreach r,$(filter $(1) $(1)/%,$(ROOMS)),$(SRC_$(r))))
$(BUILD)/wide/libfabric.a: $(call wide_of,fabric)
$(BUILD)/wide/libtrib.a: $(call wide_of,trib)

$(BUILD)/trib-plan: $(call wide,fabric/report/trib_plan.c) $(BUILD)/wide/libfabric.a $(call libs,system)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -lconfig -ljansson -lm -o $@

$(BUILD)/trib-model: $(call wide,fabric/theory/trib_model.c) $(BUILD)/wide/libfabric.a $(call libs,system)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -lconfig -ljansson -lm -o $@

# Chakra's messages, by protobuf-c.
CHAKRA := $(BUILD)/trace/formats/chakra.pb-c
$(CHAKRA).c: trace/formats/chakra.proto
	@mkdir -p $(@D)
	$(Q)protoc-c --proto_path=$(<D) --c_out=$(@D) $<
$(CHAKRA).o: $(CHAKRA).c
	$(Q)$(CC) $(CFLAGS) -c $< -o $@
$(BUILD)/trace/formats/chakra_et.o: private CFLAGS += -I$(BUILD)
$(BUILD)/trace/formats/chakra_et.o: $(CHAKRA).c
$(BUILD)/libtrace-formats.a: $(CHAKRA).o
$(BUILD)/trib-trace: $(call obj,trace/trib_trace.c) $(call libs,trace)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -ljansson -lprotobuf-c -lz -lm -o $@

# The front door finds out what any conf is called.
TRIB_LIBS := $(addprefix $(BUILD)/wide/,libtrib.a libfabric.a) $(call archives,host/keep machine system base base/shortage)
$(BUILD)/trib: $(call wide,trib/trib.c) $(TRIB_LIBS)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -lconfig -ljansson -lm -o $@

$(BUILD)/trib-switch: $(call obj,io/trib_switch.c) $(call libs,io)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) $(call DPDK_SWITCH_LIBS,$(DPDK_NICS)) -lcrypto $(NIC_LIBS) $(SYS_LIBS) -o $@

# Its own objects, not their archive: --exclude-libs hides every symbol that comes out of one. It needs the real libibverbs
# although it names nothing of it: what a program asks of this handle by name and is not here is found there (dlopen.c).
HCA := host/hca host/hca/memory host/hca/io
$(BUILD)/libtribverbs.so: $(call obj,$(foreach r,$(HCA),$(SRC_$(r)))) $(filter-out $(call archives,$(HCA)),$(call libs,$(HCA))) host/hca/exports.map
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) -shared -Wl,-soname,libtribverbs.so -Wl,--version-script=host/hca/exports.map \
	    -Wl,--exclude-libs,ALL $(linked) $(DPDK_LIBS) \
	    -Wl,--push-state,--no-as-needed -libverbs -Wl,--pop-state $(SYS_LIBS) -o $@

# The agent is an ordinary verbs program: it gets the HCA as any other does, by preload.
$(BUILD)/trib-perf: $(call obj,host/launch/trib_perf.c) $(call libs,host/launch)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -libverbs -ljansson -lmd -lconfig -lm -lpthread -o $@

# Collectives for programs of others; they get the HCA by preload, too.
$(BUILD)/libtributary.so.1: $(call obj,$(SRC_host/session)) $(filter-out %-session.a,$(call libs,host/session))
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) -shared -Wl,-soname,libtributary.so.1 -Wl,-z,defs -Wl,--exclude-libs,ALL $(linked) \
	    -lcrypto -libverbs -ljansson -lconfig -lm -ldl -lpthread -o $@
	$(Q)ln -sf libtributary.so.1 $(BUILD)/libtributary.so

# In a folder of its own when installed: a system's library of this name stays what others find.
$(BUILD)/libsharp_coll.so.5: $(call obj,$(SRC_plugins/sharp) $(SRC_plugins/common)) $(BUILD)/libtributary.so.1
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) -shared -Wl,-soname,libsharp_coll.so.5 -Wl,-z,defs $^ -libverbs -lpthread \
	    -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../../..' -o $@
	$(Q)ln -sf libsharp_coll.so.5 $(BUILD)/libsharp_coll.so

# NCCL looks for libnccl-net-NAME.so.
$(BUILD)/libnccl-net-tributary.so: $(call obj,$(SRC_plugins/nccl)) $(filter-out %-nccl.a,$(call libs,plugins/nccl)) $(BUILD)/libtributary.so.1
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) -shared -Wl,-soname,libnccl-net-tributary.so -Wl,-z,defs -Wl,--exclude-libs,ALL $(linked) $(lastword $^) -libverbs -lpthread -ldl \
	    -Wl,-rpath,'$$ORIGIN:$$ORIGIN/..' -o $@

# Open MPI loads it by its path.
$(BUILD)/plugins/openmpi/%.o: CFLAGS += -isystem $(MPI_INCLUDE) -isystem $(MPI_INCLUDE)/openmpi
$(BUILD)/openmpi/mca_coll_trib.so: $(call obj,$(wildcard plugins/openmpi/*.c)) $(BUILD)/libtributary.so.1
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) -shared $^ -Wl,-rpath,'$$ORIGIN/..:$$ORIGIN/../..' -o $@

$(BUILD)/plugins/pmix/%.o: CFLAGS += $(PMIX_CFLAGS)
$(BUILD)/pmix/store_pmix.so: $(call obj,$(wildcard plugins/pmix/*.c))
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) -shared -Wl,-z,defs $^ $(shell pkg-config --libs pmix 2>/dev/null) -o $@

# Everything in one process: nodes, HCAs and ranks.
$(BUILD)/trib-sim: $(call obj,sim/trib_sim.c) $(call libs,sim)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) $(DPDK_LIBS) -libverbs $(SYS_LIBS) -o $@

# Run by `trib exec`: sets up the emulated host's view of the machine, then executes the program.
$(BUILD)/trib-enter: $(call obj,host/sandbox/trib_enter.c) $(call libs,host/sandbox)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -lconfig -lm -o $@

# What programs on an emulated host find first on their PATH.
$(BUILD)/bin/%: host/sandbox/bin/%
	$(Q)install -D -m 755 $< $@

# Started by `trib up` and `trib perf` to supervise a fabric's processes.
$(BUILD)/trib-keep: $(call obj,host/keep/trib_keep.c) $(call libs,host/keep)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -o $@

$(BUILD)/trib-telemetry: $(call obj,io/telemetry/trib_telemetry.c) $(call libs,machine)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -ljansson -o $@

# Clients of telemetry: nothing of DPDK is linked. Without libmicrohttpd trib-metrics does not serve, without ncurses trib-top has --batch alone.
MHD     := $(shell pkg-config --exists libmicrohttpd 2>/dev/null && echo -lmicrohttpd)
NCURSES := $(shell pkg-config --libs ncursesw 2>/dev/null)
$(BUILD)/io/live/metrics_http.o: private CFLAGS += $(if $(MHD),-DTRIB_MICROHTTPD)
$(BUILD)/io/live/top_screen.o: private CFLAGS += $(if $(NCURSES),-DTRIB_NCURSES)
LIVE := $(addprefix $(BUILD)/trib-,status metrics top faults)
$(LIVE): $(BUILD)/trib-%: $(BUILD)/io/live/trib_%.o $(call libs,io/live)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -lconfig -ljansson -lm -lpthread $(if $(filter %metrics,$@),$(MHD)) $(if $(filter %top,$@),$(NCURSES)) -o $@

# With a look and a text of the test's own.
$(BUILD)/tests/io/live/test_metrics_http.o: private CFLAGS += $(if $(MHD),-DTRIB_MICROHTTPD)
$(BUILD)/tests/io/live/test_metrics_http: %: %.o $(BUILD)/io/live/metrics_http.o
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $^ -lcmocka $(MHD) -o $@

# It loads shared objects, and needs nothing of DPDK.
$(BUILD)/trib-check-protocol: $(call obj,protocols/check/trib_check_protocol.c) $(call libs,protocols/check)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -ljansson -lm -ldl -o $@

# It loads plug-ins, and shares nothing with ours but their interface.
$(BUILD)/trib-check-nccl-plugin: $(call obj,plugins/check/trib_check_nccl_plugin.c) $(call libs,plugins/check)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -ljansson -lm -ldl -o $@

# Loaded by the system's libibverbs in a program that lost LD_PRELOAD.
$(BUILD)/libtribhint.so: $(call obj,host/hint/hint.c)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) -shared $^ -o $@

# The system's clocks as fabric time (trib exec --clock fabric). In a folder of their own: an archive that has poll() in it would give it
# to every test.
$(BUILD)/libtribclock.so: $(call obj,$(SRC_host/clock) $(SRC_host/clock/calls)) $(call libs,machine) host/clock/calls/exports.map
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) -shared -Wl,-soname,libtribclock.so -Wl,-z,defs -Wl,--version-script=host/clock/calls/exports.map $(linked) -o $@

# What is compiled to ask whether a call is to fail, in programs that fail on purpose.
ifeq ($(MODE),asan)
$(addprefix $(BUILD)/trib-,sim plan model): private CFLAGS += -Wl,-u,fault_at
endif

# A test is linked to its room and what that uses, to tests/support, and to what rooms.mk lets tests of its folder join.
test_libs = $(call archives,tests/support) $(call libs,$(1) $(JOIN) $(JOIN_$(1)))
TEST_DIRS := $(filter-out fabric/wide trib trib/% include protocols plugins/% protocols/check,$(sort $(patsubst $(BUILD)/tests/%/,%,$(dir $(TESTS)))))
tests_of = $(foreach t,$(filter-out %/test_metrics_http,$(filter $(BUILD)/tests/$(1)/test_%,$(TESTS))),$(if $(findstring /,$(t:$(BUILD)/tests/$(1)/%=%)),,$(t)))
define test_rule
$(call tests_of,$(1)): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(call test_libs,$(1))
	@echo "  LD    $$@"
	$$(Q)$$(CC) $$(CFLAGS) $$(linked) $$(DPDK_LIBS) -lcmocka -lcrypto -libverbs $$(SYS_LIBS) -o $$@
endef
$(foreach d,$(TEST_DIRS),$(eval $(call test_rule,$(d))))
$(filter $(BUILD)/tests/trace/%,$(TESTS)) $(FUZZERS): private SYS_LIBS += -lprotobuf-c
# Programs beside the tests.
$(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(call test_libs,bench)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) $(DPDK_LIBS) -lcmocka -lcrypto -libverbs $(SYS_LIBS) -o $@

$(filter $(BUILD)/tests/fabric/wide/test_%,$(TESTS)): $(BUILD)/tests/%: $(BUILD)/wide/tests/%.o $(BUILD)/wide/libfabric.a $(call libs,system)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -lcmocka -lconfig -ljansson -lm -o $@

$(filter $(BUILD)/tests/trib/%,$(TESTS)): $(BUILD)/tests/%: $(BUILD)/wide/tests/%.o $(TRIB_LIBS)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -lcmocka -lconfig -ljansson -lm -o $@

# Protocols need nothing but their public header: no DPDK is linked.
STAR := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/protocols/star*.c))
$(filter $(BUILD)/tests/protocols/test_%,$(TESTS)): %: %.o $(STAR) $(call libs,protocols/host $(JOIN_protocols))
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -lcmocka -lm -ldl -o $@

# Of the public headers: programs as others make them.
$(filter $(BUILD)/tests/include/test_%,$(TESTS)): %: %.o $(BUILD)/libtributary.so.1 $(BUILD)/libsharp_coll.so.5
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $^ -lcmocka -Wl,-rpath,'$$ORIGIN/../..' -o $@

# What of SHARP's interface calls nothing below.
$(filter $(BUILD)/tests/plugins/sharp/test_%,$(TESTS)): %: %.o $(call libs,plugins/sharp)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -lcmocka -libverbs -o $@

$(filter $(BUILD)/tests/plugins/nccl/test_%,$(TESTS)): %: %.o $(call libs,plugins/nccl)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -lcmocka -libverbs -o $@

$(filter $(BUILD)/tests/plugins/check/test_%,$(TESTS)): %: %.o $(call libs,plugins/check) $(BUILD)/tests/fake/libnccl-net-mock.so
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -lcmocka -lm -ldl -o $@

# The example's shared object as bytes in the test that loads it, wherever that runs.
$(BUILD)/tests/protocols/host/tally_so.o: examples/protocol/tally.c
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) -fvisibility=default -shared $< -o $(@D)/tally.so
	$(Q)cd $(@D) && $(CC) -nostdlib -r -Wl,-z,noexecstack,-b,binary tally.so -o tally_so.o
$(BUILD)/tests/protocols/host/test_load: $(BUILD)/tests/protocols/host/tally_so.o

# The checker counts a protocol's memory by functions of its own in place of malloc() and free().
$(filter $(BUILD)/tests/protocols/check/test_%,$(TESTS)): %: %.o $(call libs,protocols/check)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) -lcmocka -lm -ldl -o $@

# For machines that have neither DPDK nor the other libraries: everything but glibc is linked in, the HCA too, so that nothing is preloaded
# and there is no `trib exec`.
STATIC := $(addprefix $(BUILD)/static/,trib trib-plan trib-model trib-switch trib-telemetry trib-status trib-perf trib-sim trib-keep)
STATIC_LIBS := -Wl,-Bstatic -lpcap -lcrypto -lconfig -ljansson -lnuma -lbsd -lmd -lelf -lz -l:libibverbs.a -Wl,-Bdynamic -lm -ldl -lpthread
$(BUILD)/static/trib-plan: $(call wide,fabric/report/trib_plan.c) $(BUILD)/wide/libfabric.a $(call libs,system)
$(BUILD)/static/trib-model: $(call wide,fabric/theory/trib_model.c) $(BUILD)/wide/libfabric.a $(call libs,system)
$(BUILD)/static/trib: $(call wide,trib/trib.c) $(TRIB_LIBS)
$(BUILD)/static/trib-keep: $(call obj,host/keep/trib_keep.c) $(call libs,host/keep)
$(BUILD)/static/trib-telemetry: $(call obj,io/telemetry/trib_telemetry.c) $(call libs,machine)
$(BUILD)/static/trib-status: $(call obj,io/live/trib_status.c) $(call libs,io/live)
$(BUILD)/static/trib-switch: $(call obj,io/trib_switch.c io/static/pcap_sources.c) $(call libs,io)
$(BUILD)/static/trib-perf: $(call obj,host/launch/trib_perf.c io/static/pcap_sources.c) $(call libs,host/launch host/hca/io)
$(BUILD)/static/trib-sim: $(call obj,sim/trib_sim.c io/static/pcap_sources.c) $(call libs,sim)
$(STATIC):
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) $(if $(filter %trib-switch,$@),$(call DPDK_SWITCH_LIBS),$(DPDK_LIBS)) $(STATIC_LIBS) -o $@

# Tools of the end-to-end tests; they share nothing with the rooms, but for how a plug-in's tables are called.
MPICC := $(shell command -v mpicc 2>/dev/null)
TOOLS := $(patsubst %.c,$(BUILD)/%,$(filter-out $(if $(MPICC),,tests/tools/mpi_%),$(wildcard tests/tools/*.c)))
$(BUILD)/tests/tools/mpi_%: tests/tools/mpi_%.c
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(MPICC) $(CFLAGS) $< -o $@
TOOL_LIBS = -lpcap -lz
$(BUILD)/tests/tools/verbs_%: TOOL_LIBS = -libverbs -lpthread
$(BUILD)/tests/tools/coll_%: TOOL_LIBS = -L$(BUILD) -ltributary -lpthread
$(BUILD)/tests/tools/coll_check $(BUILD)/tests/tools/coll_compute: $(BUILD)/libtributary.so.1
$(BUILD)/tests/tools/nccl_%: TOOL_LIBS = $(call obj,plugins/check/tables.c) -L$(BUILD) -ltributary -lpthread -ldl
$(BUILD)/tests/tools/nccl_plugin: $(BUILD)/libtributary.so.1 $(call obj,plugins/check/tables.c)
$(BUILD)/tests/tools/sharp_%: TOOL_LIBS = -L$(BUILD) -lsharp_coll -ltributary -lpthread -ldl
$(addprefix $(BUILD)/tests/tools/sharp_,bad check plugin): $(BUILD)/libsharp_coll.so.5
$(BUILD)/tests/tools/%: tests/tools/%.c $(wildcard tests/tools/*.h)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $< $(TOOL_LIBS) -o $@

# Attack programs (tests/hostile/*.sh run them); they may use the rooms. raw.c is theirs.
HOSTILE := $(patsubst %.c,$(BUILD)/%,$(filter-out tests/hostile/raw.c,$(wildcard tests/hostile/*.c)))
$(BUILD)/tests/hostile/%: $(BUILD)/tests/hostile/%.o $(BUILD)/tests/hostile/raw.o $(call test_libs,hostile)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $(linked) $(DPDK_LIBS) -lcmocka -lcrypto -libverbs $(SYS_LIBS) -o $@
# Those that are ordinary programs.
$(addprefix $(BUILD)/tests/hostile/,page telemetry slots trunk): $(BUILD)/tests/hostile/%: tests/hostile/%.c
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $< -libverbs -lpthread -o $@
$(BUILD)/tests/hostile/store: tests/hostile/store.c $(BUILD)/libtributary.so.1
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) $< -L$(BUILD) -ltributary -o $@

# A CUDA driver of host memory and threads, for tests (tests/e2e/cuda.sh).
FAKES := $(if $(NVCC),$(BUILD)/tests/fake/libcuda.so.1 $(BUILD)/tests/fake/libnccl.so.2)
$(BUILD)/tests/fake/libcuda.so.1: tests/fake/cuda.c tests/fake/memory.c $(BUILD)/host/kernels/kernels.o tests/fake/fake.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) -isystem $(CUDA_INCLUDE) -shared -Wl,-soname,libcuda.so.1 $(filter-out %.h,$^) -lpthread -o $@

# An NCCL of Tributary's own collectives, for tests (tests/e2e/nccl.sh).
$(BUILD)/tests/fake/libnccl.so.2: tests/fake/nccl.c $(BUILD)/libtributary.so.1 $(BUILD)/tests/fake/libcuda.so.1
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) -isystem $(CUDA_INCLUDE) -shared -Wl,-soname,libnccl.so.2 $< $(BUILD)/tests/fake/libcuda.so.1 -L$(BUILD) -ltributary -o $@

# A plug-in for NCCL over shared memory, right unless MOCK_PLANT= says otherwise (tests/e2e/check_nccl_plugin.sh).
FAKES += $(BUILD)/tests/fake/libnccl-net-mock.so
$(BUILD)/tests/fake/libnccl-net-mock.so: $(wildcard tests/fake/nccl_net/*.c) tests/fake/nccl_net/mock.h include/nccl/net_abi.h
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) -shared -Wl,-z,defs $(filter %.c,$^) -o $@

test-programs: $(TOOLS) $(HOSTILE) $(FAKES)
unit-programs: $(TESTS) test-programs
static-programs: $(STATIC)
bench-programs: $(BENCHES) $(filter $(BUILD)/tests/tools/mpi_%,$(TOOLS))
fuzz-programs: $(FUZZERS)
$(BUILD)/fuzz/%: tests/fuzz/%.c $(call test_libs,fuzz)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(CFLAGS) -fsanitize=fuzzer $< $(linked) \
	    $(DPDK_LIBS) -lcmocka -lcrypto -libverbs $(SYS_LIBS) -o $@

# ---- everything else ----------------------------------------------------------------------------------
# What each does is in scripts/target.sh.
$(RUN):
	+$(Q)BUILD="$(BUILD)" CC="$(CC)" MAKE="$(MAKE)" scripts/target.sh $@
docs-tables: programs
deb-test container-test: deb
lint: docs-check

help:
	@sed -n '/^# Tributary/,/^# Every room/s/^# \{0,1\}//p' Makefile | sed '$$d'

# DESTDIR and PREFIX as for install, for uninstall too.
install: all
	BUILD="$(BUILD)" DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" packaging/install.sh install
uninstall:
	BUILD="$(BUILD)" DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" packaging/install.sh uninstall

clean:
	rm -rf build build-asan build-checked build-coverage build-tsan build-debug build-fuzz

-include $(shell find $(BUILD) -name '*.d' -type f 2>/dev/null)
