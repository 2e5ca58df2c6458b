(define (domain workshop)
 (:requirements :adl :typing :action-costs)
 (:types agent place thing - object  box item - thing  toy tool - item)
 (:constants key1 - tool)
 (:predicates
   (at ?a - agent ?p - place) (near ?x - thing ?p - place) (in ?i - item ?b - box)
   (holds ?a - agent ?i - item) (open ?b - box) (locked ?b - box) (lit ?t - thing)
   (shiny ?t - thing) (path ?p ?q - place) (dusty ?i - item) (tidy) (seen ?x - object)
   (rested ?a - agent))
 (:functions (total-cost) - number)
 (:action look
   :parameters (?a - agent ?p - place)
   :precondition (at ?a ?p)
   :effect (seen ?p))
 (:action go  ; staying where one is changes nothing and is therefore impossible
   :parameters (?a - agent ?p ?q - place)
   :precondition (and (at ?a ?p) (or (path ?p ?q) (path ?q ?p) (= ?p ?q)))
   :effect (and (not (at ?a ?p)) (at ?a ?q) (increase (total-cost) 1)))
 (:action openbox
   :parameters (?a - agent ?b - box)
   :precondition (and (not (open ?b)) (exists (?p - place) (and (at ?a ?p) (near ?b ?p)))
                      (imply (locked ?b) (holds ?a key1)))
   :effect (and (open ?b) (not (locked ?b)) (forall (?i - item) (when (in ?i ?b) (seen ?i)))))
 (:action closebox
   :parameters (?a - agent ?b - box)
   :precondition (and (open ?b) (exists (?p - place) (and (at ?a ?p) (near ?b ?p))))
   :effect (not (open ?b)))
 (:action take
   :parameters (?a - agent ?i - item ?b - box ?p - place)
   :precondition (and (at ?a ?p) (near ?b ?p) (open ?b) (in ?i ?b)
                      (forall (?j - item) (not (holds ?a ?j))))
   :effect (and (holds ?a ?i) (not (in ?i ?b)) (not (tidy))))
 (:action put
   :parameters (?a - agent ?i - item ?b - box ?p - place)
   :precondition (and (at ?a ?p) (near ?b ?p) (open ?b) (holds ?a ?i))
   :effect (and (in ?i ?b) (not (holds ?a ?i))
                (when (exists (?j - item) (and (in ?j ?b) (dusty ?j))) (dusty ?i))))
 (:action flip
   :parameters (?a - agent ?t - thing)
   :precondition (or (shiny ?t) (holds ?a ?t))
   :effect (and (when (lit ?t) (not (lit ?t))) (when (not (lit ?t)) (lit ?t))))
 (:action wipe
   :parameters (?a - agent ?i - item)
   :precondition (holds ?a ?i)
   :effect (and (not (dusty ?i)) (when (dusty ?i) (not (rested ?a)))))
 (:action rest
   :parameters (?a - agent)
   :precondition (not (rested ?a))
   :effect (rested ?a))
 (:action clap
   :parameters (?o - object)
   :precondition (or (seen ?o) (rested ?o))
   :effect (seen ?o))
 (:action cleanup
   :parameters (?a - agent)
   :precondition (and (not (tidy)) (forall (?b - box) (not (open ?b))))
   :effect (tidy))
)
