# A run whose code crashes.
cat > ended-by.toml <<'END'
[system]
name = "s"
[platform]
cpus = [1]
[[task]]
name = "control"
period = "10 ms"
wcet = "1 ms"
priority = 1
body = { library = "./ended-by.so", symbol = "step" }
END
echo 'int step(void *job) { return *(volatile int *)8; }' | gcc -shared -fPIC -xc -o ended-by.so -
horolog -q run ended-by.toml --for 1s --format json
