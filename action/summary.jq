# summary.jq - what `heapwise check` and `heapwise diff` said of one profile, as Markdown for GitHub. Arguments: $profile, $blob (URL of
# the sources), $check (the JSON object, in an array), $text (what check printed of
# limits that are not kept, with annotations), $diff (what diff printed, or "").
# Names come from the profiled program: they are text, neither Markdown nor HTML.

def html: gsub("&"; "&amp;") | gsub("<"; "&lt;") | gsub(">"; "&gt;");
def code: "<code>" + (html | gsub("\\|"; "&#124;") | gsub("\n"; " ")) + "</code>";
def pre: "<pre>\n" + html + "</pre>";

def grouped: tostring | explode | reverse | [range(length) as $i | (if $i > 0 and $i % 3 == 0 then 44 else empty end), .[$i]] | reverse | implode;
def tenths: . * 10 | round | "\(. / 10 | floor).\(. % 10)";
def bytes:
    if . < 1024 then "\(.) B"
    else {value: ., units: ["KiB", "MiB", "GiB", "TiB"]}
        | .value /= 1024
        | until(.value < 1023.95 or (.units | length) == 1; .value /= 1024 | .units |= .[1:])
        | "\(.value | tenths) \(.units[0])" end;
def in_bytes: . == "peak" or . == "leaked" or . == "bytes";
def amount(measure): if . == null then "" elif measure | in_bytes then bytes else round | grouped end;
def title: {peak: "Live at the peak", leaked: "Not freed", bytes: "Allocated", count: "Allocations", temporary: "Temporary blocks"}[.] // .;
def verdict: {kept: "kept", uncertain: "unsure", broken: "**broken**"}[.] // .;

# Lines of the sources that annotations name, below the workspace only: others are nowhere on GitHub.
def unescaped: gsub("%2C"; ",") | gsub("%3A"; ":") | gsub("%0D"; "\r") | gsub("%0A"; "\n") | gsub("%25"; "%");
def links: [$text | scan("(?m)^::(?:error|warning) file=([^/,][^,]*),line=([0-9]+)")
    | {file: (.[0] | unescaped), line: .[1]} | select(.file | test("[\r\n]") | not)] | unique
    | map("[" + ("\(.file):\(.line)" | code) + "](" + $blob + "/" + (.file | split("/") | map(@uri) | join("/")) + "#L" + .line + ")") | join(", ");

($check[0]) as $checked
| ($text | split("\n") | map(select(startswith("::") | not)) | join("\n")) as $places
| "### " + ($profile | code), "",
  if $checked == null then "Nothing was checked: there is no limit, and no baseline yet.", ""
  else
    (if $checked.sampled then "The profile was sampled: values are estimates.", "" else empty end),
    "| | limit | value | at most | baseline |", "| --- | --- | ---: | ---: | ---: |",
    ($checked.checks[] | .measure as $measure
        | "| \(.verdict | verdict) | \($measure | title)\(if .name == "baseline" then ", against the baseline" else "" end) | \(.value | amount($measure)) | \(.limit | amount($measure)) | \(.baseline | amount($measure))\(if .tolerance_percent then " + \(.tolerance_percent) %" else "" end) |"),
    "",
    (if any($checked.checks[]; .verdict != "kept") then "The places that contribute most" + (links | if . == "" then "" else " (" + . + ")" end) + ":", "", ($places | pre), "" else empty end)
  end,
  if $diff != "" then "<details><summary>What changed since the baseline</summary>", "", ($diff | pre), "</details>", "" else empty end
