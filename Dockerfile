# docker build -t agui-server .
# docker run --rm -p 8080:8080 -e AGUI_API_KEY=choose-a-key agui-server
#
# For another processor: docker buildx build --platform linux/arm64 -t agui-server .

# On the processor of this machine, which compiles for the other one: emulation would take many times longer.
FROM --platform=$BUILDPLATFORM rust:1.95-slim-bookworm AS build
# Set by the builder: amd64 or arm64.
ARG TARGETARCH
WORKDIR /build
# The allocator's own build wants make; the base image has the compiler for its own processor. Cargo learns of another
# target, and of arm64's largest page size, from its configuration file.
RUN set -eu; native=$(dpkg --print-architecture); target=${TARGETARCH:-$native}; packages=make; mkdir .cargo; \
    if [ "$target" = arm64 ]; then printf '[env]\nJEMALLOC_SYS_WITH_LG_PAGE = "16"\n' > .cargo/config.toml; fi; \
    if [ "$target" != "$native" ]; then \
        case "$target" in \
            amd64) processor=x86_64 packages="make gcc-x86-64-linux-gnu libc6-dev-amd64-cross" ;; \
            arm64) processor=aarch64 packages="make gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;; \
            *) echo "the image cannot be built for $target on $native" >&2; exit 1 ;; \
        esac; \
        rustup target add "$processor-unknown-linux-gnu"; \
        printf '[build]\ntarget = "%s-unknown-linux-gnu"\n[target.%s-unknown-linux-gnu]\nlinker = "%s-linux-gnu-gcc"\n' \
            "$processor" "$processor" "$processor" >> .cargo/config.toml; \
    fi; \
    apt-get update; apt-get install -y --no-install-recommends $packages; rm -rf /var/lib/apt/lists/*
ENV CARGO_PROFILE_RELEASE_STRIP=symbols

# How the server is compiled: `dist`, as in a release, or `release`, which takes less time.
ARG PROFILE=dist

# The dependencies, in a layer of their own, which lasts until one of these files changes. Each crate of crates/ has a line.
# Cargo wants a file for every target that a Cargo.toml names, a benchmark say, so each gets one that does nothing.
COPY Cargo.toml Cargo.lock ./
COPY crates/agui-agent/Cargo.toml crates/agui-agent/
COPY crates/agui-agents/Cargo.toml crates/agui-agents/
COPY crates/agui-base/Cargo.toml crates/agui-base/
COPY crates/agui-llm/Cargo.toml crates/agui-llm/
COPY crates/agui-mcp/Cargo.toml crates/agui-mcp/
COPY crates/agui-observe/Cargo.toml crates/agui-observe/
COPY crates/agui-protocol/Cargo.toml crates/agui-protocol/
COPY crates/agui-run/Cargo.toml crates/agui-run/
COPY crates/agui-sandbox/Cargo.toml crates/agui-sandbox/
COPY crates/agui-store/Cargo.toml crates/agui-store/
COPY crates/agui-tools/Cargo.toml crates/agui-tools/
RUN set -eu; mkdir src; echo 'fn main() {}' > src/main.rs; touch src/lib.rs; \
    for member in crates/*; do mkdir "$member/src"; touch "$member/src/lib.rs"; done; \
    awk -F'"' ' \
        /^\[/ { target = ""; if (gsub(/^\[\[|\]\].*$/, "")) target = $0 } \
        target && /^(name|path) *=/ { print (/^path/ ? $2 : (target == "bench" ? "benches" : target "s") "/" $2 ".rs") } \
    ' Cargo.toml | while read -r file; do mkdir -p "$(dirname "$file")"; echo 'fn main() {}' > "$file"; done; \
    cargo build --profile "$PROFILE" --features jemalloc,object-store,otel --locked --bin agui-server

# The server itself. The files keep the times they have outside, which may lie before the build above:
# without a new time Cargo would take it for up to date. For another processor, its folder in `target` has the profile's folder.
COPY crates crates
COPY src src
COPY config config
RUN touch src/lib.rs src/main.rs crates/*/src/lib.rs \
 && cargo build --profile "$PROFILE" --features jemalloc,object-store,otel --locked --bin agui-server \
 && cp "$(find target -path "*/$PROFILE/agui-server")" .

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="agui-server" \
      org.opencontainers.image.description="An HTTP server for AG-UI, the protocol between AI agents and the user interfaces in front of them." \
      org.opencontainers.image.licenses="MIT"
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin agui \
 && install -d -o 10001 -g 10001 -m 0700 /var/lib/agui-server
COPY --from=build /build/agui-server /usr/local/bin/
# The demo's script lies beside the configuration, so that a configuration of your own can name it, too.
COPY config/docker.toml /etc/agui-server/config.toml
COPY config/scripts /etc/agui-server/scripts
# By number, so that Kubernetes can see that it is not root.
USER 10001:10001
# What the server keeps: the only place that it writes to. Also the working directory, so that a configuration without
# data_dir finds its folder `data` in the volume.
VOLUME /var/lib/agui-server
WORKDIR /var/lib/agui-server
EXPOSE 8080
# It asks the address that the configuration names, or AGUI_SERVER__LISTEN if that is set.
HEALTHCHECK --interval=30s --timeout=5s --start-period=5s --retries=3 \
    CMD ["agui-server", "health", "--config", "/etc/agui-server/config.toml"]
# No shell in between: the server itself gets the signal to stop.
ENTRYPOINT ["agui-server"]
CMD ["--config", "/etc/agui-server/config.toml"]
