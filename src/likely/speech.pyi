"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.data.wav import read_wav as read_wav
from likely.features.mfcc import MFCC as MFCC
from likely.language.bigram import Bigram as Bigram
from likely.language.bigram import learn_bigram as learn_bigram
from likely.language.transcript import Transcript as Transcript
from likely.language.word_network import WordNetwork as WordNetwork
from likely.metrics.word_error_rate import WordErrors as WordErrors
from likely.metrics.word_error_rate import word_errors as word_errors
from likely.recognizers.speech.spoken_words import SpokenWords as SpokenWords
