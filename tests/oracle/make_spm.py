#!/usr/bin/env python3
"""Writes spm.gguf (a vocabulary alone, model "llama") and spm.json (SentencePiece's ids for strings.py).

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install sentencepiece gguf
    /tmp/oracle/bin/python tests/oracle/make_spm.py tests/oracle
"""
import io, json, pathlib, sys
import gguf, sentencepiece
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from strings import SCRIPTS, CODE, CONTRACTIONS, all_strings, bad

out = pathlib.Path(sys.argv[1])
model = io.BytesIO()
sentences = (SCRIPTS * 3 + CODE + CONTRACTIONS) * 3
sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sentences), model_writer=model, vocab_size=900, model_type="bpe", byte_fallback=True, character_coverage=0.98,
                                         normalization_rule_name="identity", remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, hard_vocab_limit=False,
                                         split_digits=True, minloglevel=2)
sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
w = gguf.GGUFWriter(out / "spm.gguf", "llama")
w.add_tokenizer_model("llama")
w.add_token_list([sp.id_to_piece(i) for i in range(sp.vocab_size())])
w.add_token_scores([sp.get_score(i) for i in range(sp.vocab_size())])
w.add_token_types([int(gguf.TokenType.UNKNOWN if sp.is_unknown(i) else gguf.TokenType.CONTROL if sp.is_control(i) else gguf.TokenType.BYTE if sp.is_byte(i) else gguf.TokenType.NORMAL)
                   for i in range(sp.vocab_size())])
w.add_bos_token_id(sp.bos_id())
w.add_eos_token_id(sp.eos_id())
w.add_unk_token_id(sp.unk_id())
w.add_add_bos_token(True)
w.add_add_space_prefix(True)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
json.dump([" ".join(map(str, sp.encode(s.decode()))) for s in all_strings() if not bad(s)], open(out / "spm.json", "w"), indent=0)
