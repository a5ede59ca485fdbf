#!/usr/bin/perl
# What `make demo` profiles: counts, from a web server's log, the visitors of every page.
#
# It makes the log itself, always the same one, and keeps far more than it needs, as such programs do: every request
# as a hash of its own until the end, where a counter for each page would have been enough. The profile shows it.
use strict;
use warnings;

my $requests = shift // 60_000;
my $number   = 42;

sub random { # the same on every machine
    my $below = shift;
    $number = ($number * 1_103_515_245 + 12_345) % 2_147_483_648;
    return int($number / 65_536) % $below;
}

sub log_line {
    return sprintf '10.0.%d.%d - [%02d:%02d] "GET /page/%d?id=%s" 200 %d', random(16), random(256), random(24),
        random(60), random(400), 'x' x random(40), random(100_000);
}

my @history;
my %visitors;
for (1 .. $requests) {
    my ($client, $hour, $page, $bytes) = log_line() =~ m{^(\S+) - \[(\d+):\d+\] "GET ([^?]+).*" 200 (\d+)$};
    push @history, {client => $client, hour => $hour, page => $page, bytes => $bytes};
    $visitors{$page}{$client}++;
}

my @pages = sort { keys %{$visitors{$b}} <=> keys %{$visitors{$a}} || $a cmp $b } keys %visitors;
printf "%-10s %5d visitors\n", $_, scalar keys %{$visitors{$_}} for @pages[0 .. 4];
printf "%d requests, %d bytes\n", scalar @history, eval { my $sum = 0; $sum += $_->{bytes} for @history; $sum };
