/**
 * The operators of mailboxes, by the domains of the addresses. The table contains what the operators publish. DNS is not
 * queried: a customer's own domain whose mail is hosted by Google or Microsoft is `other`.
 *
 * Domains are listed and not matched by patterns, because a brand can have several operators: yahoo.co.jp belongs to a
 * different company than yahoo.com.
 */

/** `brand` under each of the suffixes. */
const under = (brand: string, suffixes: string): string => suffixes.replaceAll(/\S+/g, `${brand}.$&`)

const domainsByProvider: Record<string, string> = {
  gmail: 'gmail.com googlemail.com',
  microsoft: [
    under(
      'outlook',
      'com at be cl co.id co.il co.th com.ar com.au com.br com.gr com.pe com.tr com.vn cz de dk es fr hu ie in it jp kr lv my ph pt sa sg sk',
    ),
    under(
      'hotmail',
      'com be ca ch cl co.id co.il co.jp co.kr co.nz co.th co.uk co.za com.ar com.au com.br com.hk com.tr com.tw com.vn cz de dk es fi fr gr hu it lt lv my nl no ph rs se sg sk',
    ),
    under(
      'live',
      'com at be ca cl cn co.kr co.uk co.za com.ar com.au com.mx com.my com.ph com.pt com.sg de dk fi fr hk ie in it jp nl no ru se',
    ),
    'msn.com passport.com windowslive.com',
  ].join(' '),
  yahoo: [
    under(
      'yahoo',
      'com at be bg ca cl co.id co.il co.in co.kr co.nz co.th co.uk co.za com.ar com.au com.br com.co com.hk com.mx com.my com.pe com.ph com.sg com.tr com.tw com.ve com.vn cz de dk ee es fi fr gr hr hu ie in it lt lv nl no pl pt ro rs se si sk',
    ),
    under('ymail', 'com'),
    under('aol', 'com co.uk de fr it es com.au com.br se'),
    'rocketmail.com myyahoo.com aim.com netscape.net cs.com compuserve.com verizon.net',
    // AT&T's addresses.
    'att.net ameritech.net bellsouth.net flash.net nvbell.net pacbell.net prodigy.net sbcglobal.net snet.net swbell.net wans.net',
    'rogers.com',
  ].join(' '),
  yahoo_japan: 'yahoo.co.jp',
  apple: 'icloud.com me.com mac.com privaterelay.appleid.com',
  // 1&1 Mail & Media.
  gmx_webde: `${under('gmx', 'net de at ch com co.uk es eu fr info it li org tm us')} web.de email.de mail.com`,
  t_online: 't-online.de magenta.de',
  freenet: 'freenet.de',
  vodafone_de: 'arcor.de vodafone.de vodafonemail.de',
  orange: 'orange.fr wanadoo.fr',
  free_fr: 'free.fr aliceadsl.fr libertysurf.fr',
  sfr: 'sfr.fr neuf.fr 9online.fr cegetel.net club-internet.fr numericable.fr',
  laposte: 'laposte.net',
  bouygues: 'bbox.fr',
  libero: 'libero.it virgilio.it blu.it giallo.it inwind.it iol.it',
  tim: 'tim.it alice.it tin.it',
  tiscali: 'tiscali.it',
  bluewin: 'bluewin.ch bluemail.ch',
  telenet: 'telenet.be',
  proximus: 'proximus.be skynet.be',
  kpn: 'kpnmail.nl kpnplanet.nl planet.nl hetnet.nl',
  ziggo: 'ziggo.nl casema.nl chello.nl home.nl quicknet.nl upcmail.nl',
  bt: 'btinternet.com btopenworld.com talk21.com',
  virgin_media: 'virginmedia.com virgin.net blueyonder.co.uk ntlworld.com',
  sky: 'sky.com',
  talktalk: 'talktalk.net',
  seznam: 'seznam.cz email.cz post.cz spoluzaci.cz',
  wp: 'wp.pl o2.pl tlen.pl',
  onet: 'onet.pl onet.eu op.pl poczta.onet.pl vp.pl',
  interia: 'interia.pl interia.eu intmail.pl interiowy.pl poczta.fm',
  abv: 'abv.bg',
  mail_ru: 'mail.ru bk.ru inbox.ru internet.ru list.ru xmail.ru',
  yandex: `${under('yandex', 'ru com by kz ua com.tr')} ya.ru narod.ru`,
  rambler: 'rambler.ru autorambler.ru lenta.ru myrambler.ru ro.ru',
  ukr_net: 'ukr.net',
  proton: 'proton.me protonmail.com protonmail.ch pm.me',
  tuta: 'tuta.com tuta.io tutanota.com tutanota.de tutamail.com keemail.me',
  fastmail: 'fastmail.com fastmail.fm fastmail.net',
  zoho: 'zoho.com zoho.eu zoho.in zohomail.com zohomail.eu zohomail.in',
  comcast: 'comcast.net',
  charter: 'charter.net spectrum.net twc.com roadrunner.com',
  bell_canada: 'bell.net sympatico.ca',
  shaw: 'shaw.ca',
  telus: 'telus.net',
  uol: 'uol.com.br bol.com.br',
  terra: 'terra.com.br',
  telstra: 'bigpond.com bigpond.net.au',
  optus: 'optusnet.com.au',
  tencent: 'qq.com vip.qq.com foxmail.com',
  netease: '163.com vip.163.com 126.com yeah.net',
  sina: 'sina.com sina.cn',
  naver: 'naver.com',
  kakao: 'daum.net hanmail.net kakao.com',
  docomo: 'docomo.ne.jp',
  kddi: 'au.com ezweb.ne.jp',
  softbank: 'softbank.ne.jp i.softbank.jp',
  rediff: 'rediffmail.com',
}

const providerOf = new Map(
  Object.entries(domainsByProvider).flatMap(([provider, domains]) =>
    domains.split(' ').map((domain): [string, string] => [domain, provider]),
  ),
)

export const otherProvider = 'other'
export const mailboxProviders: readonly string[] = [...Object.keys(domainsByProvider), otherProvider]

/** The mailbox provider of the domain of an address, in lower case. */
export const mailboxProviderOf = (domain: string): string => providerOf.get(domain) ?? otherProvider

/** For the test: a domain with two operators would be counted for the last one only. */
export const allDomains: readonly string[] = Object.values(domainsByProvider).flatMap((domains) =>
  domains.split(' '),
)
