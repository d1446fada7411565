# Two tasks that share a resource and leave their CPU open, beside one that gives it.
cat > partition.toml <<'END'
[system]
name = "arm"
[platform]
cpus = [0, 1]
[[resource]]
name = "map"
[[task]]
name = "camera"
cpu = 0
period = "10 ms"
wcet = "6 ms"
priority = 1
END
for task in 'pose 3' 'plan 2'; do
    set -- $task
    printf '[[task]]\nname = "%s"\nperiod = "5 ms"\nwcet = "2 ms"\npriority = %s\n' "$1" "$2"
    printf '[[task.section]]\nresource = "map"\nfrom = "0 ms"\nlength = "1 ms"\n'
done >> partition.toml
horolog -q analyze partition.toml --partition all --format json
