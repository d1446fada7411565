# A verdict with a broken assumption and a missed deadline.
cat > closing.toml <<'END'
[system]
name = "s"
[[task]]
name = "imu"
period = "10 ms"
offset = "0 ms"
wcet = "1 ms"
priority = 2
execution = { jobs = ["9 ms"] }
[[task]]
name = "motor"
period = "10 ms"
offset = "0 ms"
wcet = "2 ms"
priority = 1
END
horolog -q simulate closing.toml --for 50ms --trace closing.hrt > simulated
horolog -q verify closing.toml closing.hrt --format json
