// @ts-check
/** @type {typeof import('./en.js').default} */
export default {
  title: 'Zapytaj dokumentację',
  greeting: 'Zadaj pytanie. Odpowiedzi cytują tę dokumentację i mogą być błędne: sprawdź cytowane sekcje.',
  placeholder: 'Zadaj pytanie',
  close: 'Zamknij',
  reset: 'Nowy czat',
  send: 'Wyślij',
  stop: 'Zatrzymaj',
  from_page: 'Z tej strony: {page}',
  unscope: 'Pytaj o wszystkie strony',
  you: 'Pytanie: ',
  searching: 'Przeszukiwanie dokumentacji…',
  answered: 'Z tej dokumentacji',
  selected_text: 'Z zaznaczonego tekstu',
  partial: 'Odpowiedź częściowa: nie wszystko jest w tej dokumentacji',
  not_in_docs: 'Brak w tej dokumentacji',
  degraded: 'Odpowiedź ograniczona: część usługi nie działa',
  revised: 'Zmieniono po porównaniu z dokumentacją',
  sources: 'Źródła',
  nearest: 'Strony najbliższe tematowi',
  network: 'Nie można połączyć się z asystentem.',
};
