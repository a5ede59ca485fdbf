;;; guest.el --- buffers, hash tables, regular expressions, JSON, a process -*- lexical-binding: t -*-
(require 'cl-lib)
(require 'json)

(defun guest-main ()
  (with-temp-buffer
    (dotimes (i 5000) (insert (format "line %d of %s\n" i (make-string (% i 60) ?x))))
    (goto-char (point-min))
    (let ((n 0))
      (while (re-search-forward "\\(x+\\)$" nil t) (replace-match "y\\1") (cl-incf n))
      (message "%d %s" n (md5 (current-buffer))))
    (sort-lines t (point-min) (point-max))
    (princ (format "%s\n" (md5 (current-buffer)))))
  (let ((table (make-hash-table :test 'equal)))
    (dotimes (i 50000) (puthash (number-to-string (% (* i 7919) 4099)) (list i (vector i i)) table))
    (garbage-collect)
    (princ (format "%d\n" (hash-table-count table)))
    (princ (format "%s\n" (md5 (json-encode (sort (hash-table-keys table) #'string<))))))
  (princ (shell-command-to-string "echo child; seq 3"))
  (condition-case problem (guest-deep 100000) (error (princ (format "%S\n" (car problem)))))
  (kill-emacs 6))

(defun guest-deep (n) (if (= n 0) 0 (1+ (guest-deep (1- n)))))
(defun hash-table-keys (table) (let (keys) (maphash (lambda (k _) (push k keys)) table) keys))
;;; guest.el ends here
