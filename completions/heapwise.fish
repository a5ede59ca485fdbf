# fish completion of heapwise. `heapwise complete` knows what can follow; here is only what the shell must do itself.

function __heapwise_candidates
    set -l words (commandline -opc) (commandline -ct)
    set -l lines ($words[1] complete $words[2..-1] 2>/dev/null)
    switch "$lines[1]"
        case ':files'
            __heapwise_paths __fish_complete_path
        case ':directories'
            __heapwise_paths __fish_complete_directories
        case ':command *'
            set -l first (math 1 + (string replace ':command ' '' -- $lines[1]))
            if test $first -eq (count $words)
                __fish_complete_command
            else
                complete -C (string join ' ' -- (string escape -- $words[$first..-2]) $words[-1])
            end
        case '*'
            printf '%s\n' $lines
    end
end

# Paths behind "--option=" keep it in front.
function __heapwise_paths
    set -l typed (commandline -ct)
    if string match -qr -- '^--[^=]*=' $typed
        set -l option (string replace -r -- '=.*' '=' $typed)
        for path in ($argv[1] (string replace -r -- '^[^=]*=' '' $typed))
            printf '%s%s\n' $option $path
        end
    else
        $argv[1] $typed
    end
end

complete -c heapwise -f -a '(__heapwise_candidates)'
