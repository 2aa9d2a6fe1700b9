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

# The dependencies, in a layer of their own, which lasts until one of these two files changes. Cargo wants
# a file for every target that Cargo.toml names, a benchmark say, so each gets one that does nothing.
COPY Cargo.toml Cargo.lock ./
RUN mkdir src \
 && awk -F'"' ' \
        /^\[/ { target = ""; if (gsub(/^\[\[|\]\].*$/, "")) target = $0 } \
        target && /^(name|path) *=/ { print (/^path/ ? $2 : (target == "bench" ? "benches" : target "s") "/" $2 ".rs") } \
    ' Cargo.toml | while read -r file; do mkdir -p "$(dirname "$file")"; echo 'fn main() {}' > "$file"; done \
 && echo 'fn main() {}' > src/main.rs \
 && touch src/lib.rs \
 && cargo build --profile dist --features jemalloc,object-store,otel --locked --bin agui-server

# The server itself. The files keep the times they have outside, which may lie before the build above:
# without a new time Cargo would take it for up to date. For another processor, its folder in `target` has a folder `dist`.
COPY src src
COPY config config
RUN touch src/lib.rs src/main.rs \
 && cargo build --profile dist --features jemalloc,object-store,otel --locked --bin agui-server \
 && cp "$(find target -path '*/dist/agui-server')" .

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
