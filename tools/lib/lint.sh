# shellcheck shell=bash disable=SC2154 # common.sh defines root and the rest
# The checks of tools/lint. Each prints what it finds and returns false if there was anything.

# Every file of the repository that exists, committed or about to be.
repository_files() {
  comm -23 <(git ls-files --cached --others --exclude-standard | sort -u) <(git ls-files --deleted | sort -u)
}

lint_text() { repository_files | xargs -r -d '\n' python3 "$root/tools/lib/text_rules.py"; }

lint_scripts() {
  local scripts
  have shellcheck || {
    note "$program: ShellCheck is not installed, so the scripts were not checked (tools/bootstrap --developer)."
    return 0
  }
  mapfile -t scripts < <(repository_files | xargs -r -d '\n' \
    awk 'FNR == 1 { if (/^#!.*(bash|\/sh)$/ || /^# shellcheck shell=bash/) print FILENAME; nextfile }')
  printf '%s\n' "${scripts[@]}" | xargs -r -d '\n' -P "$(nproc)" -n 4 shellcheck -x
}

# tidy_file SOURCE: clang-tidy with a memory of what was clean. Called by xargs, one process a file.
tidy_file() {
  local source=$1 key log
  key=$(
    {
      clang-tidy --version
      cat "$root/.clang-tidy"
      python3 "$root/tools/lib/preprocess.py" "$root/build/emulator/compile_commands.json" "$source"
    } | sha256sum | cut -d ' ' -f 1
  )
  if [ -e "$root/.cache/lint/$key" ]; then return 0; fi
  log=$(clang-tidy --quiet -p "$root/build/emulator/lint" "$source" 2>&1) || {
    grep -v -E '^[0-9]+ warnings? ' <<<"$log"
    return 1
  }
  { : >"$root/.cache/lint/$key"; } 2>/dev/null || true
}

lint_cpp() {
  need_writable "$root/.cache/lint"
  python3 "$root/tools/lib/preprocess.py" "$root/build/emulator/compile_commands.json" --write "$root/build/emulator/lint"
  export -f tidy_file
  export root
  # Largest first, so that no long one is left to the end.
  # shellcheck disable=SC2016 # the inner shell expands it
  python3 "$root/tools/lib/preprocess.py" "$root/build/emulator/compile_commands.json" --list |
    xargs -r -d '\n' -P "$(nproc)" -I '{}' bash -c 'tidy_file "$1"' tidy '{}'
}
