# Heapwise in a container (docs/pipelines.md): docker build -t heapwise .
#
#   BASE      the distribution, Debian 12 or newer, or Ubuntu 24.04 or newer
#   PACKAGES  more packages for the image, such as "gcc g++ clang-19 lld-19" for heapwise cc
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
ENV DEBIAN_FRONTEND=noninteractive
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates make
WORKDIR /heapwise
# What to install changes less often than the sources.
COPY scripts/setup scripts/
COPY viewer/package.json viewer/package-lock.json viewer/
RUN scripts/setup build deb
COPY . .
RUN make deb && cp build/release/heapwise_*.deb /heapwise.deb

FROM ${BASE}
ARG PACKAGES=""
COPY --from=build /heapwise.deb /
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends /heapwise.deb ${PACKAGES} \
    && rm -rf /var/lib/apt/lists/* \
    && heapwise record -q -o /tmp/true.hwprof -- /bin/true && heapwise report /tmp/true.hwprof >/dev/null && rm /tmp/true.hwprof
WORKDIR /work
ENTRYPOINT ["heapwise"]
CMD ["--help"]
