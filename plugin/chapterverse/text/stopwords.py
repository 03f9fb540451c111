"""Function words by language, which a search ignores.

The lists hold only articles, pronouns, auxiliaries, conjunctions, prepositions and question words, never a noun or a
full verb: in documentation "first", "work" or "home" can be the topic of a question. A language without a list loses
little precision, because frequent terms weigh little anyway.
"""

from __future__ import annotations

import unicodedata


def _spell(words: str) -> frozenset[str]:
    """Return the words as written, with umlauts typed as "ae", and without accents."""
    plain = words.replace("ä", "ae").replace("ö", "oe").replace("ü", "ue").replace("ß", "ss")
    bare = "".join(c for c in unicodedata.normalize("NFKD", words) if not unicodedata.combining(c))
    return frozenset((*words.split(), *plain.split(), *bare.split()))


STOP_WORDS: dict[str, frozenset[str]] = {
    "en": _spell(
        """
        a about am an and any are aren't as at be because been being but by can can't cannot could couldn't did
        didn't do does doesn't doing don't for from had has have having he her here hers him his how how's i i'd
        i'll i'm i've if in into is isn't it it's its let let's me might more most must my no nor not of on or
        our ours out please shall she should shouldn't so some such than that that's the their theirs them then
        there there's these they they're this those to too up us was wasn't we we're were what what's when where
        where's which while who whom whose why will with won't would wouldn't you you're your yours
        """
    ),
    "de": _spell(
        """
        aber alle allem allen aller alles als also am an andere anderen anderer anderes ans auch auf aus außer bei
        beim bevor bin bis bist bitte bzw da dabei dadurch dafür damit danach dann daran darauf daraus darf darfst
        darin darüber das dass davon dazu dein deine deinem deinen deiner dem den denn der des dessen dich die dies
        diese diesem diesen dieser dieses dir doch dort du durch dürfen ein eine einem einen einer eines er es etwa
        etwas euch euer eure eurem euren eurer für gegen gibt habe haben habt hat hatte hatten her hier hin hätte ich
        ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im in ins ist ja jede jedem jeden jeder jedes jemand kann
        kannst kein keine keinem keinen keiner könnt können könnte könnten machen mache macht man mehr mein meine
        meinem meinen meiner meines mich mir mit muss musst muß müssen müsste möchte möchten nach nachdem nicht nichts
        noch nun nur ob obwohl oder ohne schon sehr sei sein seine seinem seinen seiner seines seit sich sie sind so
        sobald solche solchen soll sollen sollte sollten sondern sonst soweit sowie sowohl trotz um und uns unser
        unsere unserem unseren unserer unter viel viele vom von vor war waren warum was wegen weil weitere welche
        welchem welchen welcher welches wem wen wenn wer werde werden weshalb wessen wie wieso wieviel will wir wird
        wo wobei wodurch wofür woher wohin womit woran worauf woraus worin worden worüber wovon wozu wurde wurden
        während wäre wären würde würden zu zum zur zwar zwischen über
        """
    ),
    "fr": _spell(
        """
        a afin ai ainsi alors après as au aucun aucune aussi autre autres aux avant avec avez avoir avons beaucoup
        bien c car ce ceci cela celle celles celui ces cet cette ceux chaque chez ci comme comment contre d dans de
        depuis des dois doit doivent donc dont du dès elle elles en encore entre es est et eu eux fais fait faire font
        faut ici il ils j je jusqu l la le lequel laquelle lesquels lesquelles les leur leurs lors lorsque lui là m ma
        mais me mes moi moins mon même n ne ni nos notre nous on ont or ou où par parce pas pendant peut peuvent peux
        plus plusieurs pour pourquoi pourrait pourrais pouvez pouvoir près puis puisque qu quand que quel quelle
        quelles quels qui quoi s sa sans se selon sera serait ses si sinon soit son sont sous suis sur t ta tandis te
        tel telle tes toi ton tous tout toute toutes très tu un une va vais vers veut veux voici voilà vos votre
        voudrais vous y à ça étaient était étant été êtes être
        """
    ),
    "es": _spell(
        """
        a al algo alguna algunas alguno algunos algún ante antes aquel aquella aquello aquí así aunque bajo bien cada
        casi como con contra cosa cual cuales cualquier cuando cuanta cuantas cuanto cuantos cuál cuáles cuándo cuánta
        cuántas cuánto cuántos cómo de debe deben debo del desde después donde dos durante dónde e el ella ellas ellos
        en entonces entre era eran eres es esa esas ese eso esos esta estaba estado estamos estar estas este esto
        estos está están estás estoy fue fueron ha había habría hace hacen hacer hacia haciendo hago han has hasta hay
        haya he hemos incluso la las le les lo los luego me mediante mi mis misma mismas mismo mismos mucha muchas
        mucho muchos muy más mí nada ni ninguna ninguno ningún no nos nosotros nuestra nuestras nuestro nuestros o os
        otra otras otro otros para pero poco podemos podría podrían poder por porque pude pueda pueden puedes puede
        puedo pues que quien quienes quiere quiero quisiera qué quién quiénes se sea sean según ser será si sido
        siempre sin sino sobre solo somos son soy su sus sí sólo también tan tanto te tener tengo tenemos ti tiene
        tienen toda todas todo todos tras tu tus tú u un una unas uno unos usted ustedes va vamos van vez voy y ya yo
        él
        """
    ),
    "it": _spell(
        """
        a abbiamo ad agli ai al alla alle allo anche ancora avere aveva c che chi ci cioè come con contro cosa cui d
        da dagli dai dal dalla dalle dallo degli dei del dell della delle dello deve devo devono di dopo dov dove
        dovrebbe e ed era essere fa faccio fare fra gli ha hai hanno ho i il in io l la le lei li lo loro ma me mi mia
        mie miei mio ne negli nei nel nella nelle nello no noi non nostra nostro o ogni oppure per perché perciò però
        più poi posso possono prima puoi può qual quale quali quando quanta quante quanti quanto quei quel quella
        quelle quelli quello questa queste questi questo qui s se sei senza si sia siamo sono sta stato su sua sue
        sugli sui sul sulla sulle sullo suo suoi te ti tra tu tua tuo tutta tutte tutti tutto un una uno v vi voglio
        vorrei voi vostra vostro è
        """
    ),
    "nl": _spell(
        """
        aan al alle als ander andere ben bent bij daar dan dat de deze die dit doe doen door dus een elk elke en er
        het haar had heb hebben hebt heeft hem hen hier hij hoe hoeveel hun ik in is ja je jij jou jouw jullie kan kun
        kunnen kunt maar maken mag me meer men met mij mijn moet moeten mogen na naar niet niets nog nu of om omdat
        onder ons onze ook op over te tegen toch toen tot tussen u uit uw van veel via voor waar waarmee waarom
        wanneer waren was wat we wel welk welke werd wie wij wil worden wordt zal ze zelf zich zij zijn zo zoals
        zonder zou zouden
        """
    ),
    "pt": _spell(
        """
        a ao aos aquela aquele aquilo as até cada com como contra da das de dela dele depois desde deve devem devo do
        dos e ela elas ele eles em enquanto entre era essa essas esse esses esta estas este estes está estão estou eu
        faz fazer faço foi for foram há isso isto já lhe mais mas me mesmo meu meus minha minhas muito muitos na nas
        nem no nos nossa nosso não nós o onde os ou para pela pelas pelo pelos pode podem poderia podia por porque
        posso pra quais qual qualquer quando quanta quantas quanto quantos que quem quero se sem ser será seu seus sim
        sob sobre sou sua suas são só também te tem tenho ter toda todas todo todos tu tua tudo um uma umas uns você
        vocês à às é
        """
    ),
}

#: The function words of a question: also English contractions as readers type them, without an apostrophe. The terms of
#: documents keep them, since hardly any page has one, and no index has to be written again for them.
QUESTION_STOP_WORDS: dict[str, frozenset[str]] = {
    **STOP_WORDS,
    "en": STOP_WORDS["en"].union(
        """
        aint arent cant couldnt didnt doesnt dont hadnt hasnt havent hows im isnt ive lets mustnt neednt shouldnt thats
        theres theyre theyve wasnt werent weve whats wheres whos wont wouldnt youre youve
        """.split()
    ),
}
