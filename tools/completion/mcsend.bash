# bash completion of mcsend
_ddf_mcsend() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words= files= i
  COMPREPLY=()
  # "=" is a word of its own to bash: --ttl=4 is three.
  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -- ]] && before=-- && break
  done
  case $before in
    --) files=-f ;;
    --interface) words=$(ls /sys/class/net 2>/dev/null) ;;
    --multicast) words='try require off' ;;
    --repair) words='auto verbs tcp shm udp' ;;
    --transport) words='udp verbs' ;;
    --device) words=$(ls /sys/class/infiniband 2>/dev/null) ;;
    --mtu) words='auto 1500 9000' ;;
    --progress) words='auto always never' ;;
    --config) files=-f ;;
    --object-version) words=next ;;
    --deadline) words=none ;;
    --quorum) words=all ;;
    --commit) words="each group" ;;
    --base) words='auto none' ;;
    --delta) words='auto fast' ;;
    --consistency) words='versioned immutable append-only' ;;
    --rate) words='auto 1G 10G 100G 400Mbit' ;;
    --state) words=none files=-d ;;
    --name | --keep | --settle | --expect | --wait | --linger | --group | --source | --ttl | --traffic-class | --service-level) ;;
    *)
      if [[ $word == -* ]]; then
        words='--name --object-version --watch --settle --base --delta --keep --consistency --explain
             --dry-run --expect --wait --deadline --quorum --commit --linger --serve --rate --state
             --group --interface --source --ttl --multicast --repair --transport --device --traffic-class --service-level
             --mtu --doctor
             --json --progress -v --verbose -q --quiet --config --version -h --help'
      else
        files=-f
      fi ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  if [[ $files ]]; then
    local IFS=$'\n'
    compopt -o filenames
    COMPREPLY+=($(compgen $files -- "$word"))
  fi
}
complete -F _ddf_mcsend mcsend
