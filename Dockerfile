# docker build -t agui-server .
# docker run --rm -p 8080:8080 -e AGUI_API_KEY=choose-a-key agui-server

FROM rust:1.95-slim-bookworm AS build
WORKDIR /build
# The allocator's own build wants it; the base image has the compiler.
RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/*
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
 && cargo build --profile dist --features jemalloc,otel --locked --bin agui-server

# The server itself. The files keep the times they have outside, which may lie before the build above:
# without a new time Cargo would take it for up to date.
COPY src src
COPY config config
RUN touch src/lib.rs src/main.rs \
 && cargo build --profile dist --features jemalloc,otel --locked --bin agui-server

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="agui-server" \
      org.opencontainers.image.description="An HTTP server for AG-UI, the protocol between AI agents and the user interfaces in front of them." \
      org.opencontainers.image.licenses="MIT"
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin agui \
 && install -d -o 10001 -g 10001 -m 0700 /var/lib/agui-server
COPY --from=build /build/target/dist/agui-server /usr/local/bin/
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
