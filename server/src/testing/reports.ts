/** Reports as different makes of MTA write them, with names of our own. Lines end as on the wire. */
const wire = (text: string): Buffer => Buffer.from(text.replace(/^\n/, '').replaceAll('\n', '\r\n'))

const token = 'bounce-aebaaejcgncfkztxrcm2vo6m3xxp6aye2d5holtxls2bwl56'

export const postfixBounce = wire(`
Return-Path: <>
Received: by mx1.example.net (Postfix) id 4XbW5L3zqT; Sat, 14 Nov 2026 09:30:05 +0000 (UTC)
Date: Sat, 14 Nov 2026 09:30:05 +0000 (UTC)
From: MAILER-DAEMON@mx1.example.net (Mail Delivery System)
Subject: Undelivered Mail Returned to Sender
To: ${token}@bounces.customer.example
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
\tboundary="4XbW5L2h1z.1794648605/mx1.example.net"
Message-Id: <20261114093005.4XbW5L3zqT@mx1.example.net>

This is a MIME-encapsulated message.

--4XbW5L2h1z.1794648605/mx1.example.net
Content-Description: Notification
Content-Type: text/plain; charset=us-ascii

This is the mail system at host mx1.example.net.

<bob@example.org>: host mx.example.org[192.0.2.25] said: 550 5.1.1
    <bob@example.org>: Recipient address rejected: User unknown

--4XbW5L2h1z.1794648605/mx1.example.net
Content-Description: Delivery report
Content-Type: message/delivery-status

Reporting-MTA: dns; mx1.example.net
Original-Envelope-Id: 00112233-4455-6677-8899-aabbccddeeff.3.4
X-Postfix-Queue-ID: 4XbW5L2h1z
X-Postfix-Sender: rfc822; ${token}@bounces.customer.example
Arrival-Date: Sat, 14 Nov 2026 09:30:04 +0000 (UTC)

Final-Recipient: rfc822; bob@example.org
Original-Recipient: rfc822;bob@example.org
Action: failed
Status: 5.1.1
Remote-MTA: dns; mx.example.org
Diagnostic-Code: smtp; 550 5.1.1 <bob@example.org>: Recipient address rejected:
    User unknown

--4XbW5L2h1z.1794648605/mx1.example.net
Content-Description: Undelivered Message Headers
Content-Type: text/rfc822-headers

Return-Path: <${token}@bounces.customer.example>
Message-ID: <00112233-4455-6677-8899-aabbccddeeff@customer.example>
From: Ada <ada@customer.example>
X-Postern-Ref: ${token}

--4XbW5L2h1z.1794648605/mx1.example.net--
`)

export const postfixDelay = wire(`
From: MAILER-DAEMON@mx1.example.net (Mail Delivery System)
Subject: Delayed Mail (still being retried)
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b1"

--b1
Content-Type: text/plain

Your message could not be delivered for more than 4 hour(s).

--b1
Content-Type: message/delivery-status

Reporting-MTA: dns; mx1.example.net
Original-Envelope-Id: e1

Final-Recipient: rfc822; bob@example.org
Action: delayed
Status: 4.4.1
Diagnostic-Code: X-Postfix; connect to mx.example.org[192.0.2.25]:25: Connection
    timed out
Will-Retry-Until: Thu, 19 Nov 2026 09:30:04 +0000 (UTC)

--b1
Content-Type: message/rfc822

Message-ID: <a@customer.example>

Hello

--b1--
`)

export const postfixSuccess = wire(`
Content-Type: multipart/report; report-type=delivery-status; boundary=b2
Subject: Successful Mail Delivery Report

--b2
Content-Type: text/plain

Your message was successfully delivered.

--b2
Content-Type: message/delivery-status

Reporting-MTA: dns; mx1.example.net
Original-Envelope-Id: e2

Final-Recipient: rfc822; bob@example.org
Original-Recipient: rfc822;bob@example.org
Action: relayed
Status: 2.0.0
Remote-MTA: dns; mx.example.org
Diagnostic-Code: smtp; 250 2.0.0 Ok: queued as 4XbW5M

--b2--
`)

export const eximBounce = wire(`
Return-path: <>
From: Mail Delivery System <Mailer-Daemon@exim.example.net>
To: ${token}@bounces.customer.example
Content-Type: multipart/report; report-type=delivery-status; boundary=1794648605-eximdsn-1804289383
MIME-Version: 1.0
Subject: Mail delivery failed: returning message to sender

--1794648605-eximdsn-1804289383
Content-type: text/plain; charset=us-ascii

This message was created automatically by mail delivery software.

--1794648605-eximdsn-1804289383
Content-type: message/delivery-status

Reporting-MTA: dns; exim.example.net

Action: failed
Final-Recipient: rfc822;bob@example.org
Status: 5.0.0
Remote-MTA: dns; mx.example.org
Diagnostic-Code: smtp; 550 5.7.1 Blocked by policy

--1794648605-eximdsn-1804289383
Content-type: message/rfc822

Return-path: <${token}@bounces.customer.example>
Message-ID: <b@customer.example>

Hello
--1794648605-eximdsn-1804289383--
`)

export const exchangeBounce = wire(`
MIME-Version: 1.0
From: <postmaster@tenant.example>
Content-Type: multipart/report; report-type=delivery-status;
 boundary="7c8f2f6e-1c2e-4d9a-9d3c-0d4d0a3f5f10"
X-MS-Exchange-Message-Is-Ndr:
Content-Language: en-US
Subject: Undeliverable: Hello
Auto-Submitted: auto-replied

--7c8f2f6e-1c2e-4d9a-9d3c-0d4d0a3f5f10
Content-Type: multipart/alternative; differences=Content-Type;
 boundary="inner"

--inner
Content-Type: text/plain; charset="us-ascii"
Content-Transfer-Encoding: quoted-printable

Your message to bob@tenant.example couldn't be delivered.=

--inner
Content-Type: text/html; charset="us-ascii"

<p>Your message couldn't be delivered.</p>
--inner--

--7c8f2f6e-1c2e-4d9a-9d3c-0d4d0a3f5f10
Content-Type: message/delivery-status

Reporting-MTA: dns;AB1PR01MB0001.tenant.example
Received-From-MTA: dns;mta1.example.net
Arrival-Date: Sat, 14 Nov 2026 09:30:04 +0000

Final-Recipient: rfc822;bob@tenant.example
Action: failed
Status: 5.1.10
Diagnostic-Code: smtp;550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient bob@tenant.example not found by SMTP address lookup
X-Display-Name: bob@tenant.example

--7c8f2f6e-1c2e-4d9a-9d3c-0d4d0a3f5f10
Content-Type: message/rfc822

Message-ID: <c@customer.example>

--7c8f2f6e-1c2e-4d9a-9d3c-0d4d0a3f5f10--
`)

export const gmailBounce = wire(`
From: Mail Delivery Subsystem <mailer-daemon@googlemail.example>
Content-Type: multipart/report; boundary="000000000000a1b2c3"; report-type=delivery-status
Subject: Delivery Status Notification (Failure)

--000000000000a1b2c3
Content-Type: multipart/related; boundary="000000000000d4"

--000000000000d4
Content-Type: multipart/alternative; boundary="000000000000e5"

--000000000000e5
Content-Type: text/plain; charset="UTF-8"

** Address not found **
--000000000000e5--
--000000000000d4
Content-Type: image/png; name="icon.png"
Content-Disposition: attachment; filename="icon.png"
Content-Transfer-Encoding: base64
Content-ID: <icon.png>

iVBORw0KGgo=
--000000000000d4--
--000000000000a1b2c3
Content-Type: message/delivery-status

Reporting-MTA: dns; googlemail.example
Arrival-Date: Sat, 14 Nov 2026 01:30:04 -0800 (PST)
X-Original-Message-ID: <d@customer.example>

Final-Recipient: rfc822; bob@gmail.example
Action: failed
Status: 5.1.1
Remote-MTA: dns; gmail-smtp-in.example. (192.0.2.26, the server for the domain gmail.example.)
Diagnostic-Code: smtp; 550-5.1.1 The email account that you tried to reach does not exist. Please try
 550-5.1.1 double-checking the recipient's email address for typos or
 550 5.1.1 unnecessary spaces. - gsmtp
Last-Attempt-Date: Sat, 14 Nov 2026 01:30:05 -0800 (PST)

--000000000000a1b2c3
Content-Type: message/rfc822

Message-ID: <d@customer.example>

--000000000000a1b2c3--
`)

export const abuseReport = wire(`
From: <abusedesk@example.org>
Subject: FW: Earn money
To: <feedback@postern.example>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report;
     boundary="part1_13d.2e68ed54_boundary"

--part1_13d.2e68ed54_boundary
Content-Type: text/plain; charset="US-ASCII"
Content-Transfer-Encoding: 7bit

This is an email abuse report.

--part1_13d.2e68ed54_boundary
Content-Type: message/feedback-report

Feedback-Type: Abuse
User-Agent: SomeGenerator/1.0
Version: 1
Original-Mail-From: <${token}@bounces.customer.example>
Original-Rcpt-To: <bob@example.org>
Original-Rcpt-To: <eve@example.org>
Received-Date: Sat, 14 Nov 2026 09:30:04 -0400 (EDT)
Source-IP: 192.0.2.1
Reported-Domain: customer.example

--part1_13d.2e68ed54_boundary
Content-Type: message/rfc822
Content-Disposition: inline

Return-Path: <${token}@bounces.customer.example>
From: <ada@customer.example>
To: <undisclosed@example.org>
Message-ID: <00112233-4455-6677-8899-aabbccddeeff@customer.example>
X-Postern-Ref: ${token}

Spam Spam Spam
--part1_13d.2e68ed54_boundary--
`)

export const ordinaryMail = wire(`
From: <bob@example.org>
Subject: Re: Hello
Content-Type: multipart/mixed; boundary=x

--x
Content-Type: text/plain

I got this:
--x
Content-Type: message/delivery-status

Reporting-MTA: dns; mx1.example.net

Final-Recipient: rfc822; bob@example.org
Action: failed
Status: 5.1.1
--x--
`)
