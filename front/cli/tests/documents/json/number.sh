# number FILE AT SIZE: the unsigned number of SIZE bytes at AT.
number() { od -An -tu"$3" -j "$2" -N "$3" "$1" | tr -d ' '; }
