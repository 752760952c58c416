"""Texts of fifteen languages in the charsets that files still have."""

import unicodedata

import pytest

from kbkit.ingest.embedding import RunCounters
from kbkit.models import SourceDocument
from kbkit.sources.decode import binary_kind, decode, decode_text
from kbkit.sources.files import read_file

SHORT = {
    "french": ("très", ["cp1252", "iso-8859-15"]),
    "german": ("Größe", ["cp1252", "iso-8859-15"]),
    "spanish": ("El año próximo", ["cp1252"]),
    "english": ("It’s “quoted”, 20 °C – and 5 µm", ["cp1252"]),
    "umlauts": ("ÄÖÜäöüß", ["cp1252"]),
}
LONG = {
    "french": (
        "Le serveur écoute sur le port indiqué. Après chaque modification, redémarrez-le : les "
        "réglages précédents ne sont conservés qu'à la fermeture où ça s'avère nécessaire.",
        ["cp1252", "iso-8859-15"],
    ),
    "german": (
        "Die Größe der Datei lässt sich ändern. Für jede Änderung wird eine Sicherung angelegt, "
        "die später gelöscht werden muß.",
        ["cp1252", "cp850"],
    ),
    "spanish": (
        "La contraseña caducará mañana. Añada otra dirección y pulse «Guardar» según la opción.",
        ["cp1252"],
    ),
    "polish": (
        "Aby usunąć plik, należy wybrać właściwą ścieżkę. Zmiany zostaną zapisane później, gdy "
        "użytkownik zamknie wszystkie okna i wyloguje się z systemu.",
        ["cp1250", "iso-8859-2"],
    ),
    "romanian": (
        "Această comandă șterge fișierele din dosarul ales. Înainte de „Pornire” salvați toate "
        "modificările, iar prețul în € se află la sfârșit.",
        ["iso-8859-16"],
    ),
    "czech": (
        "Příkaz vytvoří nový soubor a uloží jej do složky uživatele. Před spuštěním zkontrolujte, "
        "že máte dostatečná oprávnění; jinak bude zobrazena chyba.",
        ["cp1250", "iso-8859-2"],
    ),
    "russian": (
        "Эта команда удаляет файлы из указанной папки. Перед запуском сохраните все изменения.",
        ["cp1251", "koi8-r", "cp866", "iso-8859-5"],
    ),
    "greek": (
        "Η εντολή διαγράφει τα αρχεία του φακέλου. Αποθηκεύστε πρώτα όλες τις αλλαγές σας.",
        ["cp1253", "iso-8859-7"],
    ),
    "turkish": (
        "Bu komut seçilen klasördeki dosyaları siler. Önce bütün değişiklikleri kaydedin; işlem "
        "sırasında bağlantının kesilmediğinden ve yeterli alan kaldığından emin olun.",
        ["cp1254"],
    ),
    "japanese": (
        "このコマンドは指定したフォルダーのファイルを削除します。実行する前に変更を保存してください。",
        ["shift_jis", "euc-jp", "iso2022_jp"],
    ),
    "vendor": (
        "次の手順に従って設定してください。①ファイルを選ぶ。②㈱の名前（髙橋様、山﨑様）を入力する。Ⅲ保存。",
        ["cp932"],
    ),
    "chinese": ("此命令会删除指定文件夹中的文件。运行之前请先保存所有更改。", ["gb18030"]),
    "taiwanese": ("此命令會刪除指定資料夾中的檔案。執行之前請先儲存所有變更。", ["big5"]),
    "korean": (
        "이 명령은 지정한 폴더의 파일을 삭제합니다. 실행하기 전에 저장하십시오.",
        ["euc-kr"],
    ),
    "arabic": (
        "يحذف هذا الأمر الملفات من المجلد المحدد. احفظ جميع التغييرات قبل التشغيل.",
        ["cp1256"],
    ),
    "hebrew": (
        "פקודה זו מוחקת את הקבצים מהתיקייה שנבחרה. שמרו את כל השינויים לפני ההפעלה.",
        ["cp1255"],
    ),
}
CASES = [
    pytest.param(text, charset, id=f"{name}-{charset}")
    for texts in (SHORT, LONG)
    for name, (text, charsets) in texts.items()
    for charset in charsets
]


@pytest.mark.parametrize(("text", "charset"), CASES)
def test_charset_is_detected(text: str, charset: str) -> None:
    result = decode_text(text.encode(charset))
    assert result.text == text
    assert "names no charset" in result.note


@pytest.mark.parametrize(("text", "charset"), CASES)
def test_named_charset_is_used(text: str, charset: str) -> None:
    assert decode_text(text.encode(charset), charset) == decode_text(text.encode())
    page = f'<meta charset="{charset}"><p>{text}'
    if charset != "iso2022_jp":
        assert decode_text(page.encode(charset)).text == page
        assert decode_text(page.encode(charset)).note == ""


@pytest.mark.parametrize(
    ("label", "text", "charset"),
    [
        ("shift_jis", LONG["vendor"][0], "cp932"),
        ("x-sjis", LONG["vendor"][0], "cp932"),
        ("Windows-31J", LONG["vendor"][0], "cp932"),
        ("x-euc-jp", LONG["japanese"][0], "euc-jp"),
        ("gb2312", "朱镕基访问", "gbk"),
        ("ks_c_5601-1989", "똠방각하", "cp949"),
        ("x-x-big5", LONG["taiwanese"][0], "big5"),
        ("x-cp1251", "Привет", "cp1251"),
        ("ISO_8859-16", "Ștergeți „tot”", "iso-8859-16"),
        ("iso-8859-9", "“İşlem”", "cp1254"),
    ],
)
def test_charset_labels_mean_what_browsers_assume(label: str, text: str, charset: str) -> None:
    body = text.encode(charset)
    assert decode_text(body, label) == decode_text(text.encode())
    for page in (
        f'<html><meta charset="{label}"><p>',
        f'<html><meta http-equiv=Content-Type content="text/html; charset={label}"><p>',
        f'<?xml version="1.0" encoding="{label}"?><p>',
    ):
        assert decode_text(page.encode() + body).text == page + text


def test_vendor_characters_of_euc_jp_are_read() -> None:
    body = "手順".encode("euc-jp") + b"\xad\xa1\xad\xa2\xad\xb7\xad\xea\xfc\xe2"
    assert decode_text(body, "EUC-JP").text == "手順①②Ⅲ㈱髙"
    guessed = decode_text(LONG["japanese"][0].encode("euc-jp") + body)
    assert guessed.text == LONG["japanese"][0] + "手順①②Ⅲ㈱髙"
    assert guessed.note.endswith("euc_jp")
    damaged = ("設定" * 200).encode("euc-jp") + b"\xad"
    assert decode_text(damaged, "euc-jp").text == "設定" * 200 + "\ufffd"


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize(
    "charset",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"],
)
def test_unicode_is_read_with_and_without_a_bom(name: str, charset: str) -> None:
    text = f"{name}: {LONG[name][0]}\n"
    body = text.encode(charset)
    assert (binary_kind(body), decode_text(body).text, decode_text(body).note) == ("", text, "")


@pytest.mark.parametrize("text", ["Привет", "שלום", "日", "5 µm"])
def test_too_short_text_is_western_and_noted(text: str) -> None:
    charset = {"П": "cp1251", "ש": "cp1255", "日": "shift_jis", "5": "cp1252"}[text[0]]
    body = text.encode(charset)
    result = decode_text(body)
    alphabets = {unicodedata.name(char).split()[0] for char in result.text if char.isalpha()}
    assert alphabets <= {"LATIN", "MICRO", "FEMININE", "MASCULINE"}
    assert "cp1252" in result.note


def test_page_with_few_western_bytes_is_not_utf8() -> None:
    body = ("Plain words of a long page. " * 200).encode() + "trois café".encode("cp1252")
    assert decode(body).endswith("trois café")


def test_stray_nul_is_text_and_a_program_is_not() -> None:
    assert binary_kind(b"A long line of text.\n" * 40 + b"\x00") == ""
    assert binary_kind(bytes(range(256)) * 8) == "binary data"
    for text in ("<p>Pumps lift\0 water for the café.</p>\n", "<p>Pumps\0 lift the water.</p>\n"):
        body = (text * 10).encode().ljust(4_000)
        assert decode_text(body).text.count("Pumps") == 10
    assert binary_kind(b"".join(n.to_bytes(4, "little") for n in range(900))) == "binary data"


def test_reports_note_guessed_charsets() -> None:
    (document,) = read_file("a.md", b"# Caf\xe9\n\nTr\xe8s bien, \xe0 bient\xf4t.\n")
    assert document.title == "Café"
    counters = RunCounters()
    counters.count_fidelity(document)
    counters.count_fidelity(SourceDocument("b.md", "B", "text"))
    (note,) = counters.report().notes
    assert (note.uri, note.reason) == ("a.md", "names no charset: read as cp1252")


@pytest.mark.parametrize(
    "text", ["これは日本語の文章です。" * 20, "Русский текст о поиске. " * 20, "Größe für Übung"]
)
@pytest.mark.parametrize("charset", ["utf-8", ""])
def test_stray_byte_costs_one_character_and_is_noted(text: str, charset: str) -> None:
    result = decode_text(text[:3].encode() + b"\xff" + text[3:].encode(), charset)
    assert result.text.replace("\ufffd", "") == text
    assert result.note == "bytes that are not utf-8, read as \ufffd: 1"


def test_wrong_charset_is_noted() -> None:
    assert (
        decode_text(b"A caf\xe9 is open", "utf-8").note
        == "is not in utf-8, as it says: read as cp1252"
    )
