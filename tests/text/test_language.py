"""Detection of English text."""

import pytest

from kbkit.text import is_english

ENGLISH = "The server reads its configuration when it starts, and you can change it in the file. "
GERMAN = "Der Dienst liest seine Einstellungen, wenn er startet, und sie stehen in einer Datei. "
FRENCH = "Le serveur lit sa configuration quand il démarre, et vous pouvez la changer ici. "
SPANISH = "El servidor lee su configuración cuando se inicia, y usted puede cambiarla aquí. "
JAPANESE = "サーバーは起動時に設定ファイルを読み込みます。apache2.conf を編集してください。"
RUSSIAN = "Сервер читает настройки при запуске; изменить их можно в файле apache2.conf. "
CODE = "def main(argv=None):\n    parser = ArgumentParser(prog='x')\n    return parser.run(argv)\n"


@pytest.mark.parametrize("text", [GERMAN, FRENCH, SPANISH, JAPANESE, RUSSIAN])
def test_other_languages_are_not_english(text):
    assert not is_english([text] * 30)
    assert not is_english([text + CODE] * 30)  # manuals quote commands
    assert not is_english([text] * 25 + [ENGLISH] * 5)  # some pages are not translated


@pytest.mark.parametrize("text", [ENGLISH, CODE, "", "12 34 56", ENGLISH + CODE])
def test_english_code_and_text_without_words_are_english(text):
    assert is_english([text] * 30)
    assert is_english([text] * 27 + [GERMAN, JAPANESE, FRENCH])  # a page of names, a quotation


def test_few_words_are_no_evidence():
    assert is_english(["Zur Hilfe und"])


def test_detection_reads_a_bounded_amount_of_text():
    def endless():
        while True:
            yield GERMAN * 100

    assert not is_english(endless())
