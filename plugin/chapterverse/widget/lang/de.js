// @ts-check
/** @type {typeof import('./en.js').default} */
export default {
  title: 'Doku befragen',
  greeting: 'Einfach eine Frage stellen. Antworten zitieren diese Doku und können falsch sein: Zitierte Abschnitte bitte prüfen.',
  placeholder: 'Frage stellen',
  close: 'Schließen',
  reset: 'Neuer Chat',
  send: 'Senden',
  stop: 'Stoppen',
  from_page: 'Von dieser Seite: {page}',
  unscope: 'Zu allen Seiten fragen',
  you: 'Frage: ',
  searching: 'Doku wird durchsucht …',
  answered: 'Aus dieser Doku',
  selected_text: 'Aus dem markierten Text',
  partial: 'Teilweise beantwortet: Nicht alles steht in dieser Doku',
  not_in_docs: 'Nicht in dieser Doku',
  degraded: 'Eingeschränkte Antwort: Ein Teil des Dienstes ist gestört',
  revised: 'Nach dem Abgleich mit der Doku geändert',
  sources: 'Quellen',
  nearest: 'Verwandte Seiten',
  network: 'Der Assistent ist nicht erreichbar.',
};
