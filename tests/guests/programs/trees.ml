(* Trees, strings, big arrays outside the collector's heap, exceptions, and a forked child. *)
type tree = Leaf | Node of tree * int * tree

let rec insert x = function
  | Leaf -> Node (Leaf, x, Leaf)
  | Node (l, y, r) as t -> if x < y then Node (insert x l, y, r) else if x > y then Node (l, y, insert x r) else t

let rec sum = function Leaf -> 0 | Node (l, x, r) -> sum l + x + sum r
let rec depth n = if n = 0 then raise Not_found else 1 + depth (n - 1)

let () =
  let t = ref Leaf and x = ref 1 in
  for _ = 1 to 60000 do
    x := !x * 1103515245 land 0x3fffffff + 12345;
    t := insert (!x mod 100000) !t
  done;
  Printf.printf "%d\n" (sum !t);
  let table = Hashtbl.create 16 in
  for i = 1 to 50000 do
    Hashtbl.replace table (string_of_int (i mod 9973)) (String.make (i mod 50) 'x')
  done;
  Printf.printf "%d\n" (Hashtbl.fold (fun _ s n -> n + String.length s) table 0);
  for i = 1 to 200 do
    let a = Bigarray.Array1.create Bigarray.int Bigarray.c_layout (i * 1000) in
    Bigarray.Array1.fill a i;
    if i mod 50 = 0 then Printf.printf "%d\n" a.{i}
  done;
  (try ignore (depth 1000) with Not_found -> print_endline "deep");
  Gc.compact ();
  flush stdout;
  match Unix.fork () with
  | 0 ->
      let l = List.init 100000 (fun i -> string_of_int i) in
      Printf.printf "child %d\n" (String.length (String.concat "" l));
      exit 3
  | pid -> (
      match Unix.waitpid [] pid with
      | _, Unix.WEXITED n -> Printf.printf "ended with %d\n" n
      | _ -> print_endline "killed")
