# A disk that is served, and reads from it: what the service says at its end, or with an argument what the reader says.
head -c 16M /dev/zero > disk.img
horolog -q reserve disk serve disk.img --longest "5 ms" --socket disk.sock --reserve "camera: 64 KiB / 36 ms by 20 ms" --for 4s --format json > served.json 2> served.err &
while ! [ -S disk.sock ]; do sleep 0.05; done
horolog -q reserve disk read --socket disk.sock --reserve camera --every 40ms --count 10 --format json > reads.json
wait
[ $# -gt 0 ] && cat reads.json || cat served.json
