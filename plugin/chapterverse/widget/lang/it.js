// @ts-check
/** @type {typeof import('./en.js').default} */
export default {
  title: 'Chiedi ai docs',
  greeting: 'Fai una domanda. Le risposte citano questa documentazione e possono essere sbagliate: controlla le sezioni citate.',
  placeholder: 'Fai una domanda',
  close: 'Chiudi',
  reset: 'Nuova chat',
  send: 'Invia',
  stop: 'Interrompi',
  from_page: 'Da questa pagina: {page}',
  unscope: 'Chiedi su tutte le pagine',
  you: 'Hai chiesto: ',
  searching: 'Ricerca nella documentazione…',
  answered: 'Da questa documentazione',
  selected_text: 'Dal testo selezionato',
  partial: 'Risposta parziale: non tutto è in questa documentazione',
  not_in_docs: 'Non è in questa documentazione',
  degraded: 'Risposta ridotta: parte del servizio non funziona',
  revised: 'Modificata dopo il confronto con la documentazione',
  sources: 'Fonti',
  nearest: 'Pagine più attinenti',
  network: 'L’assistente non è raggiungibile.',
};
