# The allocation of a page's file.
sed -n '/^```toml file=conference/,/^```$/p' docs/concepts/quality-of-service.md | sed '1d;$d' > allocation.toml
horolog -q qos allocate allocation.toml --format json
