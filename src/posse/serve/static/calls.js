// What the page says to the service. A token is kept in this tab's session storage, and nowhere else.
const KEY = "posse-token";

export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (text) => sessionStorage.setItem(KEY, text),
  drop: () => sessionStorage.removeItem(KEY),
};

// Return the answer to a request, by POST if it has a body.
export async function call(path, body) {
  const headers = {};
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, {
    method: body === undefined ? "GET" : "POST",
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
    signal: AbortSignal.timeout(10000),
  });
  const found = await answer.json();
  if (!answer.ok) throw new Refused(answer.status, found.detail);
  return found;
}
