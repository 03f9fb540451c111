// @ts-check
/** @type {typeof import('./en.js').default} */
export default {
  title: 'Vraag het de docs',
  greeting: 'Stel een vraag. Antwoorden citeren deze documentatie en kunnen fout zijn: controleer de geciteerde secties.',
  placeholder: 'Stel een vraag',
  close: 'Sluiten',
  reset: 'Nieuwe chat',
  send: 'Versturen',
  stop: 'Stoppen',
  from_page: 'Vanaf deze pagina: {page}',
  unscope: 'Vraag over alle pagina’s',
  you: 'Vraag: ',
  searching: 'Documentatie doorzoeken…',
  answered: 'Uit deze documentatie',
  selected_text: 'Uit de geselecteerde tekst',
  partial: 'Deels beantwoord: niet alles staat in deze documentatie',
  not_in_docs: 'Niet in deze documentatie',
  degraded: 'Beperkt antwoord: een deel van de dienst werkt niet',
  revised: 'Gewijzigd na toetsing aan de documentatie',
  sources: 'Bronnen',
  nearest: 'Meest verwante pagina’s',
  network: 'De assistent is niet bereikbaar.',
};
