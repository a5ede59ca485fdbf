# A thin front of CMake. Every target does its own set-up: scripts/setup installs what is missing, and nothing else.
#
#   make demo       build, profile a real program, show the report
#   make test       build, run every test; what may be skipped is in tests/skips
#   make fuzz       build, run each fuzzer for ten minutes (every night; FUZZ_SECONDS=600)
#   make guests     build, run servers, browsers and interpreters under the profiler (installs them), write docs/development/guests.md
#   make bench      build, run the side-by-side benchmarks
#   make            build into build/release
#   make install    PREFIX=/usr/local DESTDIR=
#   make uninstall  PREFIX=/usr/local DESTDIR=
#   make deb        packages for Debian and Ubuntu, in build/release; name yourself as maintainer: MAINTAINER='You <you@example.com>'
#   make rpm        packages for Fedora, openSUSE and their like (needs rpmbuild), likewise
#   make clean      delete what was built
#   make help       this text

PREFIX ?= /usr/local
DESTDIR ?=

RELEASE := build/release
PROGRAM := $(RELEASE)/bin/heapwise

.PHONY: all demo test fuzz guests bench install uninstall deb rpm clean help release

all:
	@scripts/setup build
	@$(MAKE) --no-print-directory release

release:
	cmake --preset release -DHEAPWISE_TESTS=OFF
	cmake --build --preset release

demo:
	@scripts/setup build demo
	@$(MAKE) --no-print-directory release
	@scripts/demo $(PROGRAM)

test:
	@scripts/setup build test
	cmake --preset release -DHEAPWISE_TESTS=ON -DHEAPWISE_WERROR=ON
	cmake --build --preset release
	@# What fails in one build does not hide what the other would say.
	failed=0; tests/run-all release || failed=1; \
	cmake --preset asan -DHEAPWISE_TESTS=ON -DHEAPWISE_WERROR=ON && cmake --build --preset asan && \
	tests/run-all asan || failed=1; \
	exit $$failed

FUZZ_SECONDS ?= 600

fuzz:
	@scripts/setup build test
	cmake --preset release -DHEAPWISE_TESTS=ON -DHEAPWISE_FUZZ_SECONDS=$(FUZZ_SECONDS)
	cmake --build --preset release --target fuzz

guests:
	@scripts/setup build guests
	@$(MAKE) --no-print-directory release
	tests/guests/run $(PROGRAM) build/guests --suites=libuv,redis,sed --table docs/development/guests.md

bench:
	@scripts/setup build bench
	@$(MAKE) --no-print-directory release
	bench/run

# Often run as root: builds only when nothing has been built.
$(PROGRAM):
	@$(MAKE) --no-print-directory all

install: | $(PROGRAM)
	DESTDIR="$(DESTDIR)" cmake --install $(RELEASE) --prefix "$(PREFIX)"

uninstall:
	rm -f "$(DESTDIR)$(PREFIX)"/bin/heapwise
	rm -f "$(DESTDIR)$(PREFIX)"/share/man/man1/heapwise.1 "$(DESTDIR)$(PREFIX)"/share/man/man1/heapwise-*.1
	rm -rf "$(DESTDIR)$(PREFIX)"/lib/heapwise "$(DESTDIR)$(PREFIX)"/share/heapwise "$(DESTDIR)$(PREFIX)"/share/doc/heapwise
	rm -rf "$(DESTDIR)$(PREFIX)"/include/heapwise "$(DESTDIR)$(PREFIX)"/lib/cmake/Heapwise
	rm -f "$(DESTDIR)$(PREFIX)"/share/bash-completion/completions/heapwise "$(DESTDIR)$(PREFIX)"/share/zsh/site-functions/_heapwise
	rm -f "$(DESTDIR)$(PREFIX)"/share/fish/vendor_completions.d/heapwise.fish
	rm -f "$(DESTDIR)$(PREFIX)"/share/pkgconfig/heapwise.pc

deb:
	@scripts/setup build deb
	@$(MAKE) --no-print-directory release
	cd $(RELEASE) && cpack -G DEB $(if $(MAINTAINER),-D CPACK_PACKAGE_CONTACT='$(MAINTAINER)')

rpm:
	@scripts/setup build rpm
	@$(MAKE) --no-print-directory release
	cd $(RELEASE) && cpack -G RPM $(if $(MAINTAINER),-D CPACK_PACKAGE_CONTACT='$(MAINTAINER)')

clean:
	rm -rf build

help:
	@sed -n 's/^#   \{0,1\}//p' Makefile
