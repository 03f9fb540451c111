// @ts-check
/** @type {typeof import('./en.js').default} */
export default {
  title: 'اسأل الوثائق',
  greeting: 'اطرح سؤالًا. تستشهد الإجابات بهذه الوثائق وقد تخطئ: راجع الأقسام المستشهد بها.',
  placeholder: 'اطرح سؤالًا',
  close: 'إغلاق',
  reset: 'محادثة جديدة',
  send: 'إرسال',
  stop: 'إيقاف',
  from_page: 'من هذه الصفحة: {page}',
  unscope: 'السؤال عن كل الصفحات',
  you: 'السؤال: ',
  searching: 'جارٍ البحث في الوثائق…',
  answered: 'من هذه الوثائق',
  selected_text: 'من النص المحدد',
  partial: 'إجابة جزئية: ليس كل المطلوب في هذه الوثائق',
  not_in_docs: 'ليس في هذه الوثائق',
  degraded: 'إجابة محدودة: جزء من الخدمة متوقف',
  revised: 'عُدّلت بعد مقارنتها بالوثائق',
  sources: 'المصادر',
  nearest: 'أقرب الصفحات',
  network: 'تعذّر الوصول إلى المساعد.',
};
