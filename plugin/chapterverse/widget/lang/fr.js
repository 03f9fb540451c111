// @ts-check
/** @type {typeof import('./en.js').default} */
export default {
  title: 'Interroger la doc',
  greeting: 'Posez une question. Les réponses citent cette documentation et peuvent être fausses : vérifiez les sections citées.',
  placeholder: 'Posez une question',
  close: 'Fermer',
  reset: 'Nouvelle discussion',
  send: 'Envoyer',
  stop: 'Arrêter',
  from_page: 'Depuis cette page : {page}',
  unscope: 'Interroger toutes les pages',
  you: 'Votre question : ',
  searching: 'Recherche dans la documentation…',
  answered: 'D’après cette documentation',
  selected_text: 'D’après le texte sélectionné',
  partial: 'Réponse partielle : tout n’est pas dans cette documentation',
  not_in_docs: 'Absent de cette documentation',
  degraded: 'Réponse limitée : une partie du service est en panne',
  revised: 'Modifiée après vérification dans la documentation',
  sources: 'Sources',
  nearest: 'Pages les plus proches',
  network: 'L’assistant est injoignable.',
};
