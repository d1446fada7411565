# A proof with the machine profile of a page.
sed -n '/^schema .*horolog.machine/,/^```$/p' docs/concepts/measured-costs.md | sed '$d' > machine.toml
horolog -q analyze examples/quick-start/system.toml --machine machine.toml --format json
