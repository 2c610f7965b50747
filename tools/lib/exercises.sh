# shellcheck shell=bash disable=SC2154 # common.sh defines root and the rest
# A reader's copies of kernels, exercises/NN_name/NAME/kernel.cuh. What a reader wrote is moved, never deleted. Sourced
# after common.sh.

exercises=$root/exercises

# back_up FILE TARGET: moves the file to TARGET.backup-N with the first number that is free, and says so.
back_up() {
  local number=1
  while [ -e "$2.backup-$number" ] || [ -L "$2.backup-$number" ]; do number=$((number + 1)); done
  mv -n "$1" "$2.backup-$number" || die "$1 cannot be moved to $2.backup-$number; nothing was changed."
  note "$program: what was in ${1#"$root"/} is kept in ${2#"$root"/}.backup-$number"
}

# move_old_exercises: the copies used to be in build/exercises, where they went when somebody removed build.
move_old_exercises() {
  local old=$root/build/exercises folder target file name moved=0
  [ -d "$old" ] || return 0
  for folder in "$old"/*/*; do
    [ -e "$folder/kernel.cuh" ] || continue
    target=$exercises/${folder#"$old"/}
    need_writable "$target"
    for file in "$folder"/* "$folder"/.[!.]*; do
      [ -e "$file" ] || continue
      name=$(basename "$file")
      if [ ! -e "$target/$name" ]; then
        mv -n "$file" "$target/$name" || die "$file cannot be moved to $target."
      elif [ "$name" != hints ] && [ "$name" != solved ] && ! cmp -s "$file" "$target/$name"; then
        back_up "$file" "$target/$name"
      fi
    done
    moved=$((moved + 1))
    rm -rf "$folder"
  done
  rmdir "$old"/* "$old" 2>/dev/null || true
  ((moved == 0)) || note "$program: your copies of $moved exercises were moved from build/exercises to exercises"
}
