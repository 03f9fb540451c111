// @ts-check
/** What the widget says up to a first answer; `config.strings` replaces any of it, as it does what is in `more/`. */
export default {
  title: 'Ask the docs',
  greeting: 'Answers cite these docs, and can be wrong: check the cited sections.',
  placeholder: 'Ask a question',
  close: 'Close',
  reset: 'New chat',
  send: 'Send',
  stop: 'Stop',
  from_page: 'From this page: {page}',
  unscope: 'Ask about all pages',
  you: 'You asked: ',
  searching: 'Searching…',
  answered: 'From these docs',
  selected_text: 'From the selected text',
  partial: 'Partly answered: not all of it is in these docs',
  not_in_docs: 'Not in these docs',
  degraded: 'Reduced answer: part of the service is down',
  revised: 'Changed after a check against the docs',
  sources: 'Sources',
  nearest: 'Closest pages',
  network: 'The assistant cannot be reached.',
};
