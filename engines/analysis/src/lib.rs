//! Schedulability, response times, demand and load bounds, certificates.
