"""Outputs of ping in many languages, made by hand: three answers, one of them beside a duplicate, and three losses."""

from typing import NamedTuple


class Unix(NamedTuple):
    """The words of ping of Linux in a language."""

    size: str
    source: str
    seq: str
    ttl: str
    time: str
    unit: str
    silent: str
    unreachable: str
    double: str
    counts: str


UNIX = {
    "English": Unix("{} bytes ", "from {}:", "icmp_seq", "ttl", "time", " ms", "no answer yet for icmp_seq={}",
        "From {} icmp_seq={} Destination Host Unreachable", "(DUP!)",
        "{} packets transmitted, {} received, 50% packet loss, time {}ms"),
    "Czech": Unix("{} bajtů ", "z {}:", "pořadí", "TTL", "čas", " ms", "žádná odpověď pro pořadí={}",
        "Od {} pořadí={} Cílový stroj nedostupný", "(DUPL!)",
        "{} paketů odesláno, {} přijato, 50% ztráta paketů, čas {} ms"),
    "German": Unix("{} Bytes ", "von {}:", "icmp_seq", "ttl", "Zeit", " ms", "noch keine Antwort für icmp_seq={}",
        "Von {} icmp_seq={} Zielhost nicht erreichbar", "(DUP!)",
        "{} Pakete übertragen, {} empfangen, 50% Paketverlust, Zeit {}ms"),
    "Spanish": Unix("{} bytes ", "from {}:", "icmp_seq", "ttl", "tiempo", " ms", "aún sin respuesta para icmp_seq={}",
        "Origen {} icmp_seq={} Huésped Destino No Alcanzable", "(DUP!)",
        "{} paquetes transmitidos, {} recibidos, 50% perdidos, tiempo {}ms"),
    "Finnish": Unix("{} tavua ", "{}:lta:", "icmp_seq", "ttl", "aika", " ms", "ei vielä vastausta icmp_seq={}:lle",
        "{}:lta icmp_seq={} Tavoittamaton kohdeisäntä", "(Kaksoiskappale!)",
        "{} paketteja lähetetty, {} otettu vastaan, 50 % pakettihäviö, aika {} ms"),
    "French": Unix("{} octets ", "de {} :", "icmp_seq", "ttl", "temps", "\u00a0ms",
        "encore aucune réponse pour icmp_seq={}",
        "De {} icmp_seq={} Hôte de destination injoignable", "(DUPLIQUÉ\u202f!)",
        "{}\u00a0paquets transmis, {} reçus, 50\u00a0% perdus, temps {}\u00a0ms"),
    "Indonesian": Unix("{} byte ", "dari {}:", "icmp_seq", "ttl", "waktu", " ms",
        "belum ada jawaban untuk icmp_seq={}",
        "Dari {} icmp_seq={} Host Tujuan Tidak Terjangkau", "(DUP!)",
        "{} paket dikirim, {} diterima, 50% paket hilang, waktu {}ms"),
    "Italian": Unix("{} byte ", "da {}:", "icmp_seq", "ttl", "tempo", " ms",
        "nessuna risposta ancora per icmp_seq={}",
        "Da {} icmp_seq={} Host di destinazione non raggiungibile", "(DUP!)",
        "{} pacchetti trasmessi, {} ricevuti, 50% persi, tempo {}ms"),
    "Japanese": Unix("{} bytes ", "from {}:", "icmp_seq", "ttl", "時間", " ミリ秒", "icmp_seq={} が未応答です",
        "送信元 {} icmp_seq={} 目的のホストへ届きません。", "(重複!)",
        "送信パケット数 {}, 受信パケット数 {}, パケット損失 50%, 時間 {}ミリ秒"),
    "Georgian": Unix("{} ბაიტი ", "{}-დან:", "icmp_seq ", "ttl ", "დრო", " მწმ", "პასუხის გარეშე. icmp_sql={}",
        "{} -დან icm_seq={} ჰოსტი ხელმიუწვდომელია", "(DUP!)",
        "გადაცემულია {} პაკეტი, მიღებულია {}, 50% დაიკარგა, დრო {}მწმ"),
    "Kabyle": Unix("{} ibiten ", "seg {}:", "icmp_seq", "ttl", "akud", " mts", "no answer yet for icmp_seq={}",
        "From {} icmp_seq={} Destination Host Unreachable", "(DUP!)",
        "{} ikemmas yettwaṭfen, {} yettwaṭṭfen, 50% iruḥen, akud {}mts"),
    "Korean": Unix("{} 바이트 ", "{} 에서:", "icmp_seq", "ttl", "시간", " ms", "아직 응답이 없습니다(icmp_seq={})",
        "{}에서 icmp_seq={} 대상 호스트에 도달 할 수 없음", "(중복!)",
        "{} 패킷이 전송됨, {} 수신됨, 50% 패킷 손실, 시간 {}ms"),
    "Portuguese": Unix("{} bytes ", "de {}:", "icmp_seq", "ttl", "tempo", " ms",
        "nenhuma resposta ainda para icmp_seq={}",
        "De {} icmp_seq={} Host de destino inalcançável", "(DUP!)",
        "{} pacotes transmitidos, {} recebidos, 50% perda, tempo {}ms"),
    "Romanian": Unix("{} octeți ", "de la {}:", "icmp_seq", "ttl", "timp", " ms",
        "niciun răspuns încă pentru icmp_seq={}",
        "De la {} icmp_seq={} Gazdă de destinație inaccesibilă", "(DUP!)",
        "{} pachete transmise, {} primite, 50% pierderi, timp {}ms"),
    "Turkish": Unix("{} bayt ", "{}'den:", "icmp_seq", "ttl", "zaman", " ms", "icmp_seq={} için henüz cevap yok",
        "{}'den icmp_seq={} Ulaşılamayan Hedef", "(YİNELENEN!)",
        "{} paket iletildi, {} alındı, %50 paket kaybı, zaman {}ms"),
    "Ukrainian": Unix("{} байтів ", "від {}:", "icmp_seq", "ttl", "час", " мс",
        "відповідь для icmp_seq={} ще не отримано",
        "З {} icmp_seq={} Вузол призначення недоступний", "(ДУБЛЮВАННЯ!)",
        "Надіслано {} пакетів, отримано {}, втрачено 50% пакетів, час {} мс"),
    "Chinese": Unix("{} 字节，", "来自 {}:", "icmp_seq", "ttl", "时间", " 毫秒", "icmp_seq={} 未响应",
        "来自 {} icmp_seq={} 目标主机不可达", "(重复!)", "已发送 {} 个包， 已接收 {} 个包, 50% 包丢失, 耗时 {} 毫秒"),
    "Traditional Chinese": Unix("{} 資料位元組 ", "來自 {}", "icmp_seq", "ttl", "時間", " 毫秒",
        "icmp_seq={} 尚未有答案",
        "來自 {} icmp_seq={} 無法連線", "(DUP!)", "{} packets transmitted, {} received, 50% 封包遺失, 時間 {}ms"),
}  # fmt: skip


def unix(language: str, address: str = "192.0.2.1", ident: str = "") -> str:
    """Six probes, sent every 200 ms: 10.1 ms, two losses with lines, 350 ms (twice), a gap, 360 ms."""
    words = UNIX[language]
    size = "56(84)" if "." in address else "56"
    name = "ПІНГ" if language == "Ukrainian" else "PING"

    def answer(seq: int, ms: str, note: str = "") -> str:
        start = words.size.format(64) + words.source.format(f"h.example ({address})")
        return f"{start} {words.seq}={seq}{ident} {words.ttl}=57 {words.time}={ms}{words.unit}{note}"

    lines = [
        f"{name} h.example ({address}) {size} {words.size.format('').strip()}",
        answer(1, "10.1"),
        words.silent.format(2),
        words.unreachable.format("192.0.2.9", 3),
        answer(4, "350"),
        answer(4, "351", f" {words.double}"),
        answer(6, "360"),
        "",
        "--- h.example ---",
        words.counts.format(6, 3, 1000),
    ]
    return "\n".join(lines) + "\n"


class Windows(NamedTuple):
    """The lines of ping of Windows in a language, and its code page."""

    begin: str
    answer: str
    below: str
    lost: str
    counts: str
    code_page: str


WINDOWS = {
    "English": Windows("Pinging {} with 32 bytes of data:", "Reply from {}: bytes=32 time={}ms TTL=57",
        "Reply from {}: bytes=32 time<1ms TTL=57", "Request timed out.",
        "    Packets: Sent = {}, Received = {}, Lost = {} (25% loss),", "cp437"),
    "German": Windows("Ping wird ausgeführt für {} mit 32 Bytes Daten:", "Antwort von {}: Bytes=32 Zeit={}ms TTL=57",
        "Antwort von {}: Bytes=32 Zeit<1ms TTL=57", "Zeitüberschreitung der Anforderung.",
        "    Pakete: Gesendet = {}, Empfangen = {}, Verloren = {}\r\n    (25% Verlust),", "cp850"),
    "French": Windows("Envoi d'une requête 'Ping'  {} avec 32 octets de données :",
        "Réponse de {} : octets=32 temps={} ms TTL=57",
        "Réponse de {} : octets=32 temps<1ms TTL=57", "Délai d'attente de la demande dépassé.",
        "    Paquets : envoyés = {}, reçus = {}, perdus = {} (perte 25%),", "cp1252"),
    "Spanish": Windows("Haciendo ping a {} con 32 bytes de datos:", "Respuesta desde {}: bytes=32 tiempo={}ms TTL=57",
        "Respuesta desde {}: bytes=32 tiempo<1m TTL=57", "Tiempo de espera agotado para esta solicitud.",
        "    Paquetes: enviados = {}, recibidos = {}, perdidos = {}\r\n    (25% perdidos),", "cp850"),
    "Italian": Windows("Esecuzione di Ping {} con 32 byte di dati:", "Risposta da {}: byte=32 durata={}ms TTL=57",
        "Risposta da {}: byte=32 durata<1ms TTL=57", "Richiesta scaduta.",
        "    Pacchetti: Trasmessi = {}, Ricevuti = {},\r\n    Persi = {} (25% persi),", "cp850"),
    "Russian": Windows("Обмен пакетами с {} по с 32 байтами данных:", "Ответ от {}: число байт=32 время={}мс TTL=57",
        "Ответ от {}: число байт=32 время<1мс TTL=57", "Превышен интервал ожидания для запроса.",
        "    Пакетов: отправлено = {}, получено = {}, потеряно = {}\r\n    (25% потерь)", "cp866"),
    "Japanese": Windows("{} に ping を送信しています 32 バイトのデータ:",
        "{} からの応答: バイト数 =32 時間 ={}ms TTL=57",
        "{} からの応答: バイト数 =32 時間 <1ms TTL=57", "要求がタイムアウトしました。",
        "    パケット数: 送信 = {}、受信 = {}、損失 = {} (25% の損失)、", "cp932"),
    "Chinese": Windows("正在 Ping {} 具有 32 字节的数据:", "来自 {} 的回复: 字节=32 时间={}ms TTL=57",
        "来自 {} 的回复: 字节=32 时间<1ms TTL=57", "请求超时。",
        "    数据包: 已发送 = {}，已接收 = {}，丢失 = {} (25% 丢失)，", "cp936"),
    "Czech": Windows("Příkaz PING na {} s délkou 32 bajtů:", "Odpověď od {}: bajty=32 čas={}ms TTL=57",
        "Odpověď od {}: bajty=32 čas < 1ms TTL=57", "Vypršel časový limit žádosti.",
        "    Pakety: Odeslané = {}, Přijaté = {}, Ztracené = {} (ztráta 25%),", "cp852"),
}  # fmt: skip


def windows(language: str, address: str = "192.0.2.1", *, answered: bool = True, prefix: str = "") -> str:
    """Four probes: 14 ms, 380 ms, lost, below 1 ms; or four lost ones."""
    words = WINDOWS[language]
    probes = [
        words.answer.format(address, 14),
        words.answer.format(address, 380),
        words.lost,
        words.below.format(address),
    ]
    if ":" in address:  # answers over IPv6 have no TTL
        probes = [line.removesuffix(" TTL=57") for line in probes]
    counts = words.counts.format(4, 3, 1)
    if not answered:
        probes, counts = [words.lost] * 4, words.counts.format(4, 0, 4)
    lines = ["", words.begin.format(address), *probes, "", f"Ping {address}:", *counts.split("\r\n")]
    return "".join(f"{prefix}{line}\r\n" for line in lines)
