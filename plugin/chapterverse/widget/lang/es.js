// @ts-check
/** @type {typeof import('./en.js').default} */
export default {
  title: 'Preguntar a los docs',
  greeting: 'Este chat responde preguntas citando esta documentación y puede equivocarse: conviene revisar las secciones citadas.',
  placeholder: 'Hacer una pregunta',
  close: 'Cerrar',
  reset: 'Nuevo chat',
  send: 'Enviar',
  stop: 'Detener',
  from_page: 'Desde esta página: {page}',
  unscope: 'Preguntar sobre todas las páginas',
  you: 'Pregunta: ',
  searching: 'Buscando en la documentación…',
  answered: 'Según esta documentación',
  selected_text: 'Según el texto seleccionado',
  partial: 'Respuesta parcial: no todo está en esta documentación',
  not_in_docs: 'No está en esta documentación',
  degraded: 'Respuesta limitada: parte del servicio no funciona',
  revised: 'Modificada tras cotejarla con la documentación',
  sources: 'Fuentes',
  nearest: 'Páginas más relacionadas',
  network: 'No se puede contactar con el asistente.',
};
