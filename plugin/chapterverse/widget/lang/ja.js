// @ts-check
/** @type {typeof import('./en.js').default} */
export default {
  title: 'ドキュメントに質問',
  greeting: '質問を入力してください。回答はこのドキュメントを引用しますが、誤りを含むことがあります。引用元を確認してください。',
  placeholder: '質問を入力',
  close: '閉じる',
  reset: '新しいチャット',
  send: '送信',
  stop: '停止',
  from_page: 'このページから：{page}',
  unscope: 'すべてのページについて質問',
  you: '質問：',
  searching: 'ドキュメントを検索中…',
  answered: 'このドキュメントより',
  selected_text: '選択したテキストより',
  partial: '一部のみ回答：このドキュメントにない内容があります',
  not_in_docs: 'このドキュメントにはありません',
  degraded: '簡易回答：サービスの一部が停止しています',
  revised: 'ドキュメントとの照合後に修正しました',
  sources: '出典',
  nearest: '関連性の高いページ',
  network: 'アシスタントに接続できません。',
};
