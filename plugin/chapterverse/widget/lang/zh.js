// @ts-check
/** @type {typeof import('./en.js').default} */
export default {
  title: '文档问答',
  greeting: '请提问。回答会引用本文档，但也可能有误：请核对所引章节。',
  placeholder: '输入问题',
  close: '关闭',
  reset: '新对话',
  send: '发送',
  stop: '停止',
  from_page: '从本页提问：{page}',
  unscope: '针对所有页面提问',
  you: '您的问题：',
  searching: '正在搜索文档……',
  answered: '来自本文档',
  selected_text: '来自选中的文本',
  partial: '部分解答：本文档未涵盖全部内容',
  not_in_docs: '本文档未提及',
  degraded: '回答受限：部分服务不可用',
  revised: '与文档核对后已修改',
  sources: '来源',
  nearest: '最相关的页面',
  network: '无法连接到助手。',
};
