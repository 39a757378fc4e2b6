"""The services beside EC2 that are asked: who am I, image parameters, prices, quotas."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from paceline.planning.prices import Price, packaged_prices
from paceline.rehearsal.emulator import catalogue
from paceline.rehearsal.emulator.conditions import QUOTA_NAMES
from paceline.rehearsal.emulator.regions import ACCOUNT_ID, Regions

Words = Mapping[str, Any]
Answer = dict[str, Any]
_PER_PAGE = 100
_PUBLISHED = "2026-08-22T00:00:00Z"


class ServiceError(Exception):
    """A refusal in the words of one of these services."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Services:
    """The answers of Systems Manager, Price List and Service Quotas."""

    def __init__(self, regions: Regions) -> None:
        self._regions = regions
        self._actions: dict[tuple[str, str], Callable[[str, Words], Answer]] = {
            ("ssm", "GetParameter"): _parameter,
            ("ssm", "GetParameters"): _parameters,
            ("ssm", "GetParametersByPath"): _parameters_by_path,
            ("pricing", "GetProducts"): _products,
            ("servicequotas", "GetServiceQuota"): self._quota,
            ("servicequotas", "GetAWSDefaultServiceQuota"): self._quota,
            ("servicequotas", "ListServiceQuotas"): self._quotas,
        }

    def answer(self, service: str, region: str, action: str, words: Words) -> Answer:
        """Return the answer to a call; raise ServiceError for what is refused or unknown."""
        if action in self._regions.conditions.denied_actions:
            raise ServiceError(
                "AccessDeniedException",
                f"User: arn:aws:iam::{ACCOUNT_ID}:user/rehearsal is not authorized to perform: "
                f"{service}:{action}",
            )
        act = self._actions.get((service, action))
        if act is None:
            raise ServiceError("InvalidAction", f"The rehearsal has no {action} of {service}.")
        return act(region, words)

    def _quota(self, region: str, words: Words) -> Answer:
        code = words.get("QuotaCode", "")
        if words.get("ServiceCode") != "ec2" or code not in QUOTA_NAMES:
            raise ServiceError("NoSuchResourceException", f"The quota {code} does not exist.")
        return {"Quota": self._describe(region, code)}

    def _quotas(self, region: str, words: Words) -> Answer:
        if words.get("ServiceCode") != "ec2":
            raise ServiceError("NoSuchResourceException", "The service has no quotas here.")
        return {"Quotas": [self._describe(region, code) for code in QUOTA_NAMES]}

    def _describe(self, region: str, code: str) -> Answer:
        return {
            "ServiceCode": "ec2",
            "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
            "QuotaArn": f"arn:aws:servicequotas:{region}:{ACCOUNT_ID}:ec2/{code}",
            "QuotaCode": code,
            "QuotaName": QUOTA_NAMES[code],
            "Value": self._regions.conditions.vcpu_quotas.get(code, 0.0),
            "Unit": "None",
            "Adjustable": True,
            "GlobalQuota": False,
        }


def caller_identity() -> str:
    """Return STS's answer to the question who is calling."""
    return (
        '<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
        "<GetCallerIdentityResult>"
        f"<Arn>arn:aws:iam::{ACCOUNT_ID}:user/rehearsal</Arn><UserId>AIDAREHEARSAL</UserId>"
        f"<Account>{ACCOUNT_ID}</Account></GetCallerIdentityResult>"
        "<ResponseMetadata><RequestId>rehearsal</RequestId></ResponseMetadata>"
        "</GetCallerIdentityResponse>"
    )


# --- Systems Manager ------------------------------------------------------------------------------


def _describe_parameter(region: str, name: str, value: str) -> Answer:
    return {
        "Name": name,
        "Type": "String",
        "Value": value,
        "Version": 1,
        "ARN": f"arn:aws:ssm:{region}::parameter{name}",
        "DataType": "aws:ec2:image" if name.endswith("ami-id") else "text",
    }


def _parameter(region: str, words: Words) -> Answer:
    found = _parameters(region, {"Names": [words.get("Name", "")]})["Parameters"]
    if not found:
        raise ServiceError("ParameterNotFound", "")
    return {"Parameter": found[0]}


def _parameters(region: str, words: Words) -> Answer:
    known = catalogue.parameters_of(region)
    names = words.get("Names") or []
    return {
        "Parameters": [
            _describe_parameter(region, name, known[name]) for name in names if name in known
        ],
        "InvalidParameters": [name for name in names if name not in known],
    }


def _parameters_by_path(region: str, words: Words) -> Answer:
    path = str(words.get("Path", "/")).rstrip("/") + "/"
    deep = words.get("Recursive") is True
    found = [
        _describe_parameter(region, name, value)
        for name, value in catalogue.parameters_of(region).items()
        if name.startswith(path) and (deep or "/" not in name[len(path) :])
    ]
    return _page(found, words, "Parameters", 10)


def _page(items: list[Any], words: Words, key: str, size: int) -> Answer:
    start = int(words.get("NextToken") or 0)
    end = start + int(words.get("MaxResults") or size)
    more = {"NextToken": str(end)} if end < len(items) else {}
    return {key: items[start:end], **more}


# --- Price List -----------------------------------------------------------------------------------

_PLACES = {
    "us-east-1": "US East (N. Virginia)",
    "us-east-2": "US East (Ohio)",
    "us-west-1": "US West (N. California)",
    "us-west-2": "US West (Oregon)",
    "eu-west-1": "EU (Ireland)",
    "eu-central-1": "EU (Frankfurt)",
    "sa-east-1": "South America (Sao Paulo)",
}


def _products(region: str, words: Words) -> Answer:
    del region  # this service stands in one region and knows the prices of all
    if words.get("ServiceCode") != "AmazonEC2":
        raise ServiceError("NotFoundException", "The service has no prices here.")
    wanted = {entry["Field"]: entry["Value"] for entry in words.get("Filters") or ()}
    found = [
        json.dumps(product)
        for price in packaged_prices().prices.values()
        if price.on_demand_usd_per_hour is not None
        for product in [_product(price)]
        if _fits(product["product"]["attributes"], wanted)
    ]
    return {"FormatVersion": "aws_v1", **_page(found, words, "PriceList", _PER_PAGE)}


def _fits(attributes: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(attributes.get(key) == value for key, value in wanted.items())


def _product(price: Price) -> Answer:
    sku = f"{price.region}-{price.instance_type}".upper().replace(".", "")
    term, dimension = f"{sku}.JRTCKXETXF", f"{sku}.JRTCKXETXF.6YS6EN2CT7"
    hourly = price.on_demand_usd_per_hour
    attributes = {
        "servicecode": "AmazonEC2",
        "instanceType": price.instance_type,
        "regionCode": price.region,
        "location": _PLACES.get(price.region, price.region),
        "locationType": "AWS Region",
        "vcpu": f"{price.vcpus:g}" if price.vcpus is not None else "NA",
        "memory": f"{price.memory_gib:g} GiB" if price.memory_gib is not None else "NA",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "licenseModel": "No License required",
        "marketoption": "OnDemand",
        "operation": "RunInstances",
        "usagetype": f"BoxUsage:{price.instance_type}",
    }
    offer = {
        "sku": sku,
        "offerTermCode": "JRTCKXETXF",
        "effectiveDate": _PUBLISHED,
        "termAttributes": {},
        "priceDimensions": {
            dimension: {
                "rateCode": dimension,
                "unit": "Hrs",
                "beginRange": "0",
                "endRange": "Inf",
                "appliesTo": [],
                "description": f"${hourly} per On Demand Linux {price.instance_type} Instance Hour",
                "pricePerUnit": {"USD": f"{hourly:.10f}"},
            }
        },
    }
    return {
        "serviceCode": "AmazonEC2",
        "publicationDate": _PUBLISHED,
        "version": _PUBLISHED.replace("-", "")[:8],
        "product": {"productFamily": "Compute Instance", "sku": sku, "attributes": attributes},
        "terms": {"OnDemand": {term: offer}},
    }
