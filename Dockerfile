# A bare Debian 12 (or Ubuntu 24.04: --build-arg BASE=ubuntu:24.04) with what the README asks for, and its first command:
#   docker build -t gemm-steps .
#   docker run -it gemm-steps
# Checked by a linter; nobody has built it on a hosted service yet.
ARG BASE=debian:12
FROM ${BASE}
# The distribution decides the versions, as on a reader's machine.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /gemm-steps
COPY . .
RUN tools/run 01
CMD ["bash"]
