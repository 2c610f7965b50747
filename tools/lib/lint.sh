# shellcheck shell=bash disable=SC2154 # common.sh defines root and the rest
# The checks of tools/lint. Each prints what it finds and returns false if there was anything.

# Every file of the repository that exists, committed or about to be.
repository_files() {
  git ls-files --cached --others --exclude-standard | sort -u | while read -r file; do
    if [ -f "$file" ]; then echo "$file"; fi
  done
}

lint_text() {
  local found=0 file
  while read -r file; do
    grep -q -I . "$file" || continue # binary or empty
    # Two blanks end a line of a Markdown file on purpose; anywhere else they are an accident.
    blanks='[[:blank:]]$'
    if [[ $file == *.md ]]; then blanks='([^ ] |[[:blank:]]{3,}|\t)$'; fi
    if sed -n -E "/\r\$/{=;s/.*/carriage return/p;q};/$blanks/{=;s/.*/trailing blank/p}" "$file" | paste -d ' ' - - |
      sed "s|^\([0-9]*\) |$file:\1: |" | grep .; then
      found=1
    fi
    if [ -n "$(tail -c 1 "$file")" ]; then
      say "$file: no newline at the end"
      found=1
    fi
    if grep -n -H -E '^(<<<<<<<|>>>>>>>) ' "$file"; then found=1; fi
  done < <(repository_files)
  return $found
}

lint_scripts() {
  local found=0 file scripts=()
  while read -r file; do
    case $(head -c 60 "$file" | head -n 1 | tr -d '\0') in
      '#!'*bash | '#!'*/sh)
        scripts+=("$file")
        if [ ! -x "$file" ]; then
          say "$file: a script that is not executable"
          found=1
        fi
        ;;
      '# shellcheck shell=bash'*) scripts+=("$file") ;;
    esac
    if [[ $file == *.py ]]; then
      python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file" || found=1
    fi
  done < <(repository_files)
  if have shellcheck; then
    shellcheck -x "${scripts[@]}" || found=1
  else
    note "$program: ShellCheck is not installed, so the scripts were not checked (tools/bootstrap --developer)."
  fi
  return $found
}

# tidy_file SOURCE: clang-tidy with a memory of what was clean. Called by xargs, one process a file.
tidy_file() {
  local source=$1 key log
  key=$(
    {
      clang-tidy --version
      cat "$root/.clang-tidy" "$root/tests/.clang-tidy"
      python3 "$root/tools/lib/preprocess.py" "$root/build/emulator/compile_commands.json" "$source"
    } | sha256sum | cut -d ' ' -f 1
  )
  if [ -e "$root/.cache/lint/$key" ]; then return 0; fi
  log=$(clang-tidy --quiet -p "$root/build/emulator" "$source" 2>&1) || {
    grep -v -E '^[0-9]+ warnings? ' <<<"$log"
    return 1
  }
  : >"$root/.cache/lint/$key"
}

lint_cpp() {
  mkdir -p "$root/.cache/lint"
  export -f tidy_file
  export root
  # Largest first, so that no long one is left to the end.
  # shellcheck disable=SC2016 # the inner shell expands it
  python3 "$root/tools/lib/preprocess.py" "$root/build/emulator/compile_commands.json" --list |
    xargs -r -d '\n' -P "$(nproc)" -I '{}' bash -c 'tidy_file "$1"' tidy '{}'
}
