# The processors of a verified simulation.
horolog -q simulate examples/quick-start/system.toml --trace processors.hrt > simulated
horolog -q verify examples/quick-start/system.toml processors.hrt --format json
