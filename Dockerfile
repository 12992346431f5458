FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --locked --release --bin muxgate && strip target/release/muxgate

FROM debian:bookworm-slim
RUN useradd --system --no-create-home --uid 10001 muxgate
COPY --from=build /src/target/release/muxgate /usr/local/bin/muxgate
USER muxgate
# The usual listener and the admin pages.
EXPOSE 4114 9990
# SIGTERM drains; the default grace is 10 s, so give `docker stop` a little more.
STOPSIGNAL SIGTERM
ENTRYPOINT ["muxgate"]
CMD ["--help"]
