// @ts-check
/** @type {typeof import('./en.js').default} */
export default {
  title: 'Perguntar aos docs',
  greeting: 'Faça uma pergunta. As respostas citam esta documentação e podem estar erradas: confira os trechos citados.',
  placeholder: 'Faça uma pergunta',
  close: 'Fechar',
  reset: 'Novo chat',
  send: 'Enviar',
  stop: 'Parar',
  from_page: 'A partir desta página: {page}',
  unscope: 'Perguntar sobre todas as páginas',
  you: 'Pergunta: ',
  searching: 'Pesquisa na documentação…',
  answered: 'Segundo esta documentação',
  selected_text: 'Segundo o texto selecionado',
  partial: 'Resposta parcial: nem tudo está nesta documentação',
  not_in_docs: 'Não está nesta documentação',
  degraded: 'Resposta limitada: parte do serviço não funciona',
  revised: 'Alterada após comparação com a documentação',
  sources: 'Fontes',
  nearest: 'Páginas mais relacionadas',
  network: 'O assistente está inacessível.',
};
