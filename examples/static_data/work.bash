# A shell script as scripts are: loops, arithmetic, strings, arrays, functions, patterns.
declare -A seen
declare -a list
fib() { local a=0 b=1 i; for ((i = 0; i < $1; i++)); do ((c = a + b, a = b, b = c)); done; value=$a; }
for ((round = 0; round < ${1:-200}; round++)); do
    text="the quick brown fox jumps over the lazy dog $round"
    for word in $text; do
        ((seen[$word]++))
        case $word in
            [a-f]*) list+=("${word^^}") ;;
            *o*) list+=("${word//o/0}") ;;
            *) list+=("${word%?}") ;;
        esac
    done
    printf -v line '%s-%05d' "${list[-1]}" "$round"
    [[ $line =~ ^([a-zA-Z0-9]+)-0*([0-9]*)$ ]] && key=${BASH_REMATCH[1]}
    fib 20
    ((${#list[@]} > 400)) && list=("${list[@]:300}")
done
echo "${#seen[@]} ${#list[@]} $key $value"
