# What a contributor does. `just` lists it; each line works without just, too. CONTRIBUTING.md has the rarer commands.

[private]
default:
    @just --list --unsorted

# the demo server on http://127.0.0.1:8080, or `just run --config FILE`
run *ARGUMENTS:
    cargo run -- {{ ARGUMENTS }}

# format and clippy, without warnings
check:
    cargo fmt --all --check
    cargo clippy --locked --workspace --all-targets -- -D warnings

# the unit tests of one crate, such as `just test run`; the server's own with `just test server`
test ROOM *ARGUMENTS:
    cargo test --locked -p agui-{{ ROOM }} --lib {{ ARGUMENTS }}

# the files that are generated from the code: a table of docs/protocol.md, config/schema.json and the options of config/default.toml, the list of public items
accept:
    UPDATE_DOCS=1 cargo test --locked --test rooms own_names
    UPDATE_SCHEMA=1 cargo test --locked --workspace --lib the_committed_schema
    UPDATE_PUBLIC_ITEMS=1 cargo test --locked --workspace --test architecture public_items

# the measurements of benches/, or one of them: `just bench latency`
bench NAME="*":
    cargo bench --locked -p agui-server --bench '{{ NAME }}'
