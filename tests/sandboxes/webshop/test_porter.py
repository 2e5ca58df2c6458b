from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxgym.sandboxes.webshop.porter import stem

STEMS = """
    caresses caress  ponies poni  ties ti  caress caress  cats cat  gas ga  this thi
    feed feed  agreed agre  plastered plaster  bled bled  motoring motor  sing sing
    conflated conflat  troubled troubl  sized size  hopping hop  tanned tan  falling fall
    hissing hiss  fizzed fizz  failing fail  filing file  happy happi  sky sky  toys toi
    relational relat  conditional condit  rational ration  valenci valenc  hesitanci hesit
    digitizer digit  conformabli conform  radicalli radic  differentli differ  vileli vile
    analogousli analog  vietnamization vietnam  predication predic  operator oper
    feudalism feudal  decisiveness decis  hopefulness hope  callousness callous
    formaliti formal  sensitiviti sensit  sensibiliti sensibl  triplicate triplic
    formative form  formalize formal  electriciti electr  electrical electr  hopeful hope
    goodness good  revival reviv  allowance allow  inference infer  airliner airlin
    gyroscopic gyroscop  adjustable adjust  defensible defens  irritant irrit
    replacement replac  adjustment adjust  dependent depend  adoption adopt  homologou homolog
    communism commun  activate activ  angulariti angular  homologous homolog  effective effect
    bowdlerize bowdler  probate probat  rate rate  cease ceas  controll control  roll roll
    archaeology archaeolog  geologi geologi  possibly possibl  enjoyable enjoy  yes ye  say sai
    dyed dy  dying dy  being be  agreement agreement  cement cement  national nation
    vegan vegan  women women  shoes shoe  dresses dress  batteries batteri  lightning lightn
    opinion opinion  union union  million million  x-large x-larg  8.5 8.5
""".split()  # noqa: SIM905


@pytest.mark.parametrize(("word", "expected"), list(zip(STEMS[::2], STEMS[1::2], strict=True)))
def test_stems(word, expected):
    assert stem(word) == expected


@pytest.mark.parametrize("word", ["", "a", "is", "ed", "és", "日本語", "☃️"])
def test_short_words_and_other_scripts_stay(word):
    assert stem(word) == word


@settings(deadline=None)
@given(st.text(alphabet="aeiousyltnbgzcd'9é", min_size=3, max_size=15))
def test_a_stem_is_no_longer_than_its_word(word):
    assert len(stem(word)) <= len(word)
