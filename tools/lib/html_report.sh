# shellcheck shell=bash disable=SC2034,SC2154 # common.sh and the scripts share variables
# --html FILE of tools/run and tools/emulate: the program writes what it knows, and report_page.py makes a page of it.

# take_html ARGUMENT...: sets html to the file of --html, or to nothing, and remaining to the other arguments; those behind -- stay.
take_html() {
  html='' remaining=()
  while (($# > 0)); do
    case $1 in
      --) break ;;
      --html)
        (($# > 1)) || die "--html needs a file: --html report.html."
        html=$2
        shift
        ;;
      --html=*) html=${1#*=} ;;
      *)
        remaining+=("$1")
        shift
        continue
        ;;
    esac
    shift
    [ -n "$html" ] || die "--html needs a file: --html report.html."
    if [ -e "$html" ] || [ -L "$html" ]; then die "'$html' is there already; name another file for --html, or remove it."; fi
    [ -d "$(dirname "$html")" ] || die "there is no folder '$(dirname "$html")' for --html."
    [ -w "$(dirname "$html")" ] || die "nothing can be written in the folder '$(dirname "$html")' of --html."
  done
  remaining+=("$@")
  local argument
  for argument in "${remaining[@]}"; do
    [ "$argument" != -- ] || break
    case $html:$argument in
      ?*:--explore | ?*:--shrink | ?*:--replay | ?*:--ledger) die "--html does not go with $argument: leave one of them out." ;;
    esac
  done
}

# write_html DATA [NAME=PATH...]: the page, where the program has written something.
write_html() {
  if [ -s "$1" ]; then
    python3 "$root/tools/lib/report_page.py" "$1" "$html" "${@:2}" || die "the page could not be made."
  else
    note "$program: no rule was reported broken and no result wrong, so $html is not written"
  fi
}
