<?php
// Words, objects, cycles, exceptions, regular expressions, JSON, and a child that writes through a pipe.
class Node { public $other; public $data; function __construct($n) { $this->data = str_repeat(chr(65 + $n % 26), $n % 700); } }
$words = [];
for ($i = 0; $i < 40000; $i++) {
    $word = substr(md5((string)$i), 0, 4);
    $words[$word] = ($words[$word] ?? 0) + 1;
}
ksort($words);
echo count($words), ' ', md5(json_encode($words)), "\n";
for ($round = 0; $round < 20; $round++) {
    for ($i = 0; $i < 500; $i++) { $a = new Node($i); $b = new Node($i + 1); $a->other = $b; $b->other = $a; }
    gc_collect_cycles();
}
echo preg_match_all('/([a-f]+)(\d+)/', implode(' ', array_keys($words))), "\n";
function deep($n) { if ($n == 0) throw new RuntimeException('deep'); return deep($n - 1); }
try { deep(2000); } catch (RuntimeException $e) { echo get_class($e), ' ', count($e->getTrace()), "\n"; }
$child = proc_open(['sort'], [['pipe', 'r'], ['pipe', 'w'], STDERR], $pipes);
fwrite($pipes[0], implode("\n", array_slice(array_keys($words), 0, 500, true)) . "\n");
fclose($pipes[0]);
echo md5(stream_get_contents($pipes[1])), ' ', proc_close($child), "\n";
exit(0);
