; A household: one agent, receptacles that stay where they are, objects that move between them.
;
; Every receptacle has a location of its own; one more location, the middle of the room, has none,
; and the agent starts there. What never changes (types, places of receptacles, abilities) comes
; first, what actions change after it. The names of the predicates are those of ALFWorld, so that
; code which reads its facts reads ours.

(define (domain household)
  (:requirements :adl :typing)
  (:types agent location receptacle object rtype otype)

  (:predicates
    ; the room and the things in it
    (receptacleAtLocation ?r - receptacle ?l - location)
    (receptacleType ?r - receptacle ?rt - rtype)
    (objectType ?o - object ?ot - otype)
    (canContain ?rt - rtype ?ot - otype)
    (openable ?r - receptacle)
    (pickupable ?o - object)
    (isReceptacleObject ?o - object)
    (toggleable ?o - object)
    (sliceable ?o - object)
    (sharp ?o - object)
    (cleanable ?o - object)
    (heatable ?o - object)
    (coolable ?o - object)
    (cleans ?r - receptacle)
    (heats ?r - receptacle)
    (cools ?r - receptacle)

    ; the state
    (atLocation ?a - agent ?l - location)
    (holds ?a - agent ?o - object)
    (holdsAny ?a - agent)
    (inReceptacle ?o - object ?r - receptacle)
    (opened ?r - receptacle)
    (isClean ?o - object)
    (isHot ?o - object)
    (isCool ?o - object)
    (isToggled ?o - object)
    (isSliced ?o - object)
    ; An action without an effect would be thrown away by a planner, so the actions that only look
    ; all leave this one trace.
    (attentive ?a - agent))

  ; --- looking ------------------------------------------------------------------------------

  (:action help
    :parameters (?a - agent)
    :precondition (and)
    :effect (attentive ?a))

  (:action inventory
    :parameters (?a - agent)
    :precondition (and)
    :effect (attentive ?a))

  (:action look
    :parameters (?a - agent ?l - location)
    :precondition (atLocation ?a ?l)
    :effect (attentive ?a))

  (:action examineReceptacle
    :parameters (?a - agent ?r - receptacle)
    :precondition
      (exists (?l - location)
        (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l)))
    :effect (attentive ?a))

  (:action examineObject
    :parameters (?a - agent ?o - object)
    :precondition
      (or
        (holds ?a ?o)
        (exists (?l - location ?r - receptacle)
          (and
            (atLocation ?a ?l)
            (receptacleAtLocation ?r ?l)
            (inReceptacle ?o ?r)
            (or (not (openable ?r)) (opened ?r)))))
    :effect (attentive ?a))

  ; --- moving and doors -----------------------------------------------------------------------

  (:action GotoLocation
    :parameters (?a - agent ?lStart - location ?lEnd - location ?r - receptacle)
    :precondition (and (atLocation ?a ?lStart) (receptacleAtLocation ?r ?lEnd))
    :effect (and (not (atLocation ?a ?lStart)) (atLocation ?a ?lEnd)))

  (:action OpenObject
    :parameters (?a - agent ?l - location ?r - receptacle)
    :precondition
      (and
        (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
        (openable ?r) (not (opened ?r)))
    :effect (opened ?r))

  (:action CloseObject
    :parameters (?a - agent ?l - location ?r - receptacle)
    :precondition
      (and
        (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
        (openable ?r) (opened ?r))
    :effect (not (opened ?r)))

  ; --- taking and putting, one object at a time -------------------------------------------------

  (:action PickupObject
    :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
    :precondition
      (and
        (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
        (or (not (openable ?r)) (opened ?r))
        (pickupable ?o) (inReceptacle ?o ?r)
        (not (holdsAny ?a)))
    :effect
      (and
        (not (inReceptacle ?o ?r))
        (holds ?a ?o) (holdsAny ?a)))

  (:action PutObject
    :parameters
      (?a - agent ?l - location ?o - object ?r - receptacle ?ot - otype ?rt - rtype)
    :precondition
      (and
        (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
        (or (not (openable ?r)) (opened ?r))
        (holds ?a ?o)
        (objectType ?o ?ot) (receptacleType ?r ?rt) (canContain ?rt ?ot))
    :effect
      (and
        (inReceptacle ?o ?r)
        (not (holds ?a ?o)) (not (holdsAny ?a))))

  ; --- changing what is held; the appliance's door does not matter ------------------------------

  (:action CleanObject
    :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
    :precondition
      (and
        (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
        (cleans ?r) (cleanable ?o) (holds ?a ?o))
    :effect (isClean ?o))

  (:action HeatObject
    :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
    :precondition
      (and
        (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
        (heats ?r) (heatable ?o) (holds ?a ?o))
    :effect (and (isHot ?o) (not (isCool ?o))))

  (:action CoolObject
    :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
    :precondition
      (and
        (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
        (cools ?r) (coolable ?o) (holds ?a ?o))
    :effect (and (isCool ?o) (not (isHot ?o))))

  ; --- changing what lies in front of the agent -------------------------------------------------

  (:action SliceObject
    :parameters (?a - agent ?l - location ?r - receptacle ?co - object ?ko - object)
    :precondition
      (and
        (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
        (or (not (openable ?r)) (opened ?r))
        (sliceable ?co) (inReceptacle ?co ?r)
        (sharp ?ko) (holds ?a ?ko))
    :effect (isSliced ?co))

  ; A lamp that was once switched on stays on: the task asks for light, not for a switch position.
  (:action ToggleObject
    :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
    :precondition
      (and
        (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
        (toggleable ?o) (inReceptacle ?o ?r))
    :effect (isToggled ?o)))
